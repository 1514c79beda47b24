import type { OriginActivity } from '@continuo/shared/activity.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { ApiError } from '@continuo/shared/errors.ts';
import type { WirePrompt } from '@continuo/shared/generation.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import { MIN_SECRET_LENGTH } from '@continuo/shared/signing.ts';
import type { KnownAccount, ListedAccount, UsageAccount } from '@continuo/shared/usage.ts';
import { type Env, fetcherOf, secretOf } from '../env/env.ts';
import type { Settings } from '../env/settings.ts';
import { afterAlone } from '../timers/request-timers.ts';
import type { Fetch } from './fetch-upstream.ts';
import { ModelLists } from './model-lists.ts';
import { OpenAiUpstream } from './openai.ts';
import { OriginUpstream } from './origin.ts';
import { affinityKey, rank } from './rendezvous.ts';
import { type Candidate, RoutedUpstream } from './routed-upstream.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamConfig } from './upstream-config.ts';
import { type UpstreamCondition, UpstreamHealth } from './upstream-health.ts';

/**
 * Tenant and prompt of a request. They select the upstream, because prefix caches are per tenant and prompt.
 */
interface Affinity {
  readonly tenantId: string;
  readonly prompt: WirePrompt | null;
}

export interface UpstreamActivity {
  readonly name: string;
  /** Null if this kind of upstream does not say, or failed. */
  readonly activity: OriginActivity | null;
  readonly failure: string | null;
}

async function activityOf(upstream: Upstream, signal: AbortSignal): Promise<UpstreamActivity> {
  const { name } = upstream;
  try {
    return { name, activity: (await upstream.activity?.(signal)) ?? null, failure: null };
  } catch (thrown) {
    return { name, activity: null, failure: errorMessage(thrown) };
  }
}

/** The served models and their upstreams. */
export interface Catalogue {
  /** @throws ApiError 502, 503, 504 if no upstream has ever returned its list */
  models(signal: AbortSignal): Promise<readonly OriginModel[]>;
  /** As `models`, for a list: a model whose upstreams do not answer is `failed`. Requests still try them. */
  listed(signal: AbortSignal): Promise<readonly OriginModel[]>;
  /** Returns the error of an upstream whose models are unknown; null if all lists are known. */
  missing(): ApiError | null;
  /** What a generation has used, by the named upstream, or from all if the name is null or unknown. */
  usageOf(account: string, upstream: string | null, signal: AbortSignal): Promise<KnownAccount>;
  /** Returns the accounts of all upstreams whose names begin with this text; null unless all answer. */
  accountsUnder(prefix: string, signal: AbortSignal): Promise<readonly ListedAccount[] | null>;
  /** What this isolate knows of an upstream. */
  conditionOf(upstream: string): UpstreamCondition;
  /** Returns what each upstream does and did, or why it did not say. */
  activity(signal: AbortSignal): Promise<readonly UpstreamActivity[]>;
  /** Selects the upstreams of one request. */
  upstreamFor(model: OriginModel, affinity: Affinity): RoutedUpstream;
}

/** @throws Error if a secret or a binding of the upstream is not there */
export function createCandidate(
  config: UpstreamConfig,
  settings: Settings,
  env: Env,
  now: () => number,
): Candidate {
  return { upstream: createUpstream(config, settings, env, now), timeouts: config.timeouts };
}

function createUpstream(config: UpstreamConfig, settings: Settings, env: Env, now: () => number): Upstream {
  const { name, url } = config;
  const shared = {
    name,
    url,
    fetch: fetchOf(config, env),
    acceptTimeoutMs: config.timeouts.connectMs ?? settings.ACCEPT_TIMEOUT_MS,
  };
  if (config.kind === 'openai') {
    const apiKey = config.apiKey === undefined ? null : secretOf(env, config.apiKey);
    const { cacheSalt = config.flavor === 'llm-d' } = config;
    return new OpenAiUpstream({ ...config, ...shared, apiKey, cacheSalt, now });
  }
  const secret = secretOf(env, config.secret);
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new Error(
      `The secret ${config.secret} has ${secret.length} characters; it must have at least ${MIN_SECRET_LENGTH}.`,
    );
  }
  const validation = settings.ENVIRONMENT === 'development' ? 'every' : 'first';
  return new OriginUpstream({ ...shared, secret, models: config.models ?? null, validation, now });
}

function fetchOf({ binding }: UpstreamConfig, env: Env): Fetch {
  if (binding === undefined) return (url, init) => fetch(url, init);
  const fetcher = fetcherOf(env, binding);
  return (url, init) => fetcher.fetch(url, init);
}

/** If a request was tried at two, the running account counts, else the one with the higher usage. */
export function accountOf(accounts: readonly (UsageAccount | null)[]): UsageAccount | null {
  const kept = accounts.filter((account) => account !== null);
  const total = ({ usage }: UsageAccount): number => usage.promptTokens + usage.completionTokens;
  const [most] = kept.toSorted((a, b) => total(b) - total(a));
  return kept.find(({ ended }) => !ended) ?? most ?? null;
}

/** Adds the names of MODEL_ALIASES to the models. */
function withAliases(
  models: readonly OriginModel[],
  aliases: Settings['MODEL_ALIASES'],
): readonly OriginModel[] {
  if (aliases.length === 0) return models;
  return models.map((model) => {
    const names = [model.id, ...model.aliases];
    const added = aliases.filter((alias) => names.includes(alias.model)).map(({ name }) => name);
    return { ...model, aliases: [...model.aliases, ...added] };
  });
}

/** What an isolate knows of its upstreams. It outlives their list. */
export interface UpstreamState {
  readonly lists: ModelLists;
  readonly health: UpstreamHealth;
}

export const createUpstreamState = ({ MODELS_TTL_MS }: Settings, now: () => number): UpstreamState => ({
  lists: new ModelLists(MODELS_TTL_MS, now, afterAlone),
  health: new UpstreamHealth(now),
});

interface UpstreamList {
  readonly candidates: readonly Candidate[];
  /** They get no requests, but still know what theirs have used. */
  readonly removed: readonly Upstream[];
}

export function createCatalogue(
  { candidates, removed }: UpstreamList,
  { lists, health }: UpstreamState,
  settings: Settings,
  now: () => number,
): Catalogue {
  const byName = new Map(candidates.map((candidate) => [candidate.upstream.name, candidate]));
  const upstreams = candidates.map(({ upstream }) => upstream);
  return {
    models: async (signal) => withAliases(await lists.all(upstreams, signal), settings.MODEL_ALIASES),
    async listed(signal) {
      const models = await this.models(signal);
      const lost = await lists.unreachable(upstreams, signal);
      const isServed = ({ id }: OriginModel) =>
        upstreams.some(({ name }) => !lost.has(name) && lists.stateOf(name, id) !== null);
      return models.map((model) =>
        model.state === 'loaded' && !isServed(model) ? { ...model, state: 'failed' } : model,
      );
    },
    missing: () => lists.missing(upstreams),
    conditionOf: (name) => health.conditionOf(name),
    activity: (signal) => Promise.all(upstreams.map((upstream) => activityOf(upstream, signal))),
    async usageOf(account, upstream, signal) {
      const ask = (all: readonly Upstream[]) =>
        Promise.allSettled(all.map((upstream) => upstream.usageOf(account, signal)));
      const named = [...upstreams, ...removed].find(({ name }) => name === upstream);
      // Removed ones may have ended, so their answers are not required.
      const [required, others] = await Promise.all(
        named ? [ask([named]), []] : [ask(upstreams), ask(removed)],
      );
      const accounts = [...required, ...others].flatMap((result) =>
        result.status === 'fulfilled' ? [result.value] : [],
      );
      const complete = required.every(({ status }) => status === 'fulfilled');
      return { account: accountOf(accounts), complete };
    },
    async accountsUnder(prefix, signal) {
      const current = upstreams.map((upstream) => upstream.accountsUnder(prefix, signal));
      const others = removed.map((upstream) => upstream.accountsUnder(prefix, signal).catch(() => []));
      return Promise.all([...current, ...others]).then(
        (all) => all.flat(),
        () => null,
      );
    },
    upstreamFor(model, { tenantId, prompt }) {
      const serving = upstreams.filter(({ name }) => lists.stateOf(name, model.id) !== null);
      const names = (serving.length > 0 ? serving : upstreams).map(({ name }) => name);
      const ranked = rank(names, affinityKey(tenantId, prompt));
      // Prefer upstreams that have the model loaded; the others would have to load it first.
      const ready = (name: string) => Number(lists.stateOf(name, model.id) === 'loaded');
      const ordered = health.order(ranked.toSorted((a, b) => ready(b) - ready(a)));
      return new RoutedUpstream(
        ordered.map((name) => byName.get(name)!),
        health,
        now,
      );
    },
  };
}
