import type { ApiError } from '../../shared/errors.ts';
import type { OriginModel, UsageAccount, WirePrompt } from '../../shared/generation.ts';
import { type Env, fetcherOf, type Settings, secretOf } from '../env.ts';
import { afterAlone } from '../timers/request-timers.ts';
import type { Carrier } from './ask.ts';
import { ModelLists } from './model-lists.ts';
import { OpenAiUpstream } from './openai.ts';
import { OriginUpstream } from './origin.ts';
import { affinityKey, rank } from './rendezvous.ts';
import { type Candidate, RoutedUpstream } from './routed-upstream.ts';
import type { Upstream } from './upstream.ts';
import { parseUpstreams, type UpstreamConfig } from './upstream-config.ts';
import { UpstreamHealth } from './upstream-health.ts';

/** What the choice of an upstream may depend on: prefix caches are per tenant and prompt. */
export interface Affinity {
  readonly tenantId: string;
  readonly prompt: WirePrompt | null;
}

/** What upstreams say that a generation has used. */
export interface KnownAccount {
  /** Null when none that has answered remembers it. */
  readonly account: UsageAccount | null;
  /** Whether all of them have answered. */
  readonly complete: boolean;
}

/** The models on offer and who serves them. */
export interface Catalogue {
  /** @throws ApiError 502, 503, 504 when no upstream can say */
  models(signal: AbortSignal): Promise<readonly OriginModel[]>;
  /** Why the list may lack models: an upstream that has never told its own; null when all have. */
  missing(): ApiError | null;
  /** What a generation has used, by the upstream of that name, or by whichever remembers it. */
  usageOf(account: string, upstream: string | null, signal: AbortSignal): Promise<KnownAccount>;
  /** For one request. */
  upstreamFor(model: OriginModel, affinity: Affinity): RoutedUpstream;
}

function createUpstream(config: UpstreamConfig, settings: Settings, env: Env, now: () => number): Upstream {
  const { name, url } = config;
  const shared = {
    name,
    url,
    carrier: carrierOf(config, env),
    acceptTimeoutMs: config.timeouts.connectMs ?? settings.ACCEPT_TIMEOUT_MS,
  };
  if (config.kind === 'openai') {
    const apiKey = config.apiKey === undefined ? null : secretOf(env, config.apiKey);
    const { models, cacheSalt } = config;
    return new OpenAiUpstream({ ...shared, apiKey, models, cacheSalt, now });
  }
  const secret = secretOf(env, config.secret);
  return new OriginUpstream({ ...shared, secret, models: config.models ?? null, now });
}

function carrierOf({ binding }: UpstreamConfig, env: Env): Carrier {
  if (binding === undefined) return (url, init) => fetch(url, init);
  const fetcher = fetcherOf(env, binding);
  return (url, init) => fetcher.fetch(url, init);
}

/** A request may have failed at one upstream before another took it: what runs still counts, else what used most. */
export function accountOf(accounts: readonly (UsageAccount | null)[]): UsageAccount | null {
  const known = accounts.filter((account) => account !== null);
  const total = ({ usage }: UsageAccount): number => usage.promptTokens + usage.completionTokens;
  const [most] = known.toSorted((a, b) => total(b) - total(a));
  return known.find(({ ended }) => !ended) ?? most ?? null;
}

/** The configured upstreams, and what this isolate knows of their models and their health. */
export function createCatalogue(env: Env, settings: Settings, now: () => number): Catalogue {
  const candidates = new Map<string, Candidate>(
    parseUpstreams(settings).map((config) => {
      const upstream = createUpstream(config, settings, env, now);
      return [config.name, { upstream, timeouts: config.timeouts }];
    }),
  );
  const upstreams = [...candidates.values()].map(({ upstream }) => upstream);
  const lists = new ModelLists(settings.MODELS_TTL_MS, now, afterAlone);
  const health = new UpstreamHealth(now);
  return {
    models: (signal) => lists.all(upstreams, signal),
    missing: () => lists.missing,
    async usageOf(account, upstream, signal) {
      const named = upstreams.filter(({ name }) => name === upstream);
      const knowing = named.length > 0 ? named : upstreams;
      const asked = await Promise.allSettled(knowing.map((one) => one.usageOf(account, signal)));
      const answers = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      return { account: accountOf(answers), complete: answers.length === knowing.length };
    },
    upstreamFor(model, { tenantId, prompt }) {
      const serving = upstreams.filter(({ name }) => lists.stateOf(name, model.id) !== null);
      const names = (serving.length > 0 ? serving : upstreams).map(({ name }) => name);
      const ranked = rank(names, affinityKey(tenantId, prompt));
      // Where the model is loaded, the request is answered now; elsewhere it would only load it.
      const ready = (name: string) => Number(lists.stateOf(name, model.id) === 'loaded');
      const ordered = health.order(ranked.toSorted((a, b) => ready(b) - ready(a)));
      return new RoutedUpstream(
        ordered.map((name) => candidates.get(name)!),
        health,
        now,
      );
    },
  };
}
