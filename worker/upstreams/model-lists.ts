import { ApiError } from '@continuo/shared/errors.ts';
import type { ModelState, OriginModel } from '@continuo/shared/origin-model.ts';
import type { After } from '@continuo/shared/time-limit.ts';
import { withTimeLimit } from '@continuo/shared/time-limit.ts';
import type { Upstream } from './upstream.ts';

/** Milliseconds that a request waits for a new list while the old one is known. */
const REFRESH_TIMEOUT_MS = 1_000;

interface KnownList {
  readonly models: readonly OriginModel[];
  readonly until: number;
}

/**
 * Caches each upstream's list of models for a short time, and for longer while the upstream is unreachable.
 */
export class ModelLists {
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #after: After;
  readonly #lists = new Map<string, KnownList>();
  /** The upstreams that did not answer when they were last asked. */
  readonly #lost = new Set<string>();
  /** When upstreams with configured lists are asked again, in Unix milliseconds. */
  readonly #askedUntil = new Map<string, number>();
  /** The errors of upstreams that have never returned a list. */
  readonly #unknown = new Map<string, ApiError>();

  /** @param now Unix milliseconds */
  constructor(ttlMs: number, now: () => number, after: After) {
    this.#ttlMs = ttlMs;
    this.#now = now;
    this.#after = after;
  }

  /**
   * Returns the models of all upstreams. A model of several upstreams is described by one that has it loaded,
   * else by the first one that could read its files.
   * @throws the error of the first upstream, if no list is known
   */
  async all(upstreams: readonly Upstream[], signal: AbortSignal): Promise<readonly OriginModel[]> {
    const failures: unknown[] = [];
    await Promise.all(
      upstreams.map((upstream) =>
        this.#refresh(upstream, signal).catch((thrown: unknown) => failures.push(thrown)),
      ),
    );
    const models = upstreams.flatMap(({ name }) => this.#lists.get(name)?.models ?? []);
    if (models.length === 0 && failures.length > 0) throw failures[0];
    const ids = new Set(models.map(({ id }) => id));
    return [...ids].map((id) => {
      const offers = models.filter((model) => model.id === id);
      const readable = offers.find(({ state }) => state !== 'unavailable');
      return offers.find(({ state }) => state === 'loaded') ?? readable ?? offers[0]!;
    });
  }

  async #refresh(upstream: Upstream, signal: AbortSignal): Promise<void> {
    const list = this.#lists.get(upstream.name);
    if (list && list.until > this.#now()) return;
    const { name } = upstream;
    const remember = (models: readonly OriginModel[], ms = this.#ttlMs): void => {
      this.#lists.set(name, { models, until: this.#now() + ms });
    };
    // One request refreshes the list and the others use the old one, so that a hung upstream does not delay
    // them.
    if (list) remember(list.models);
    const fetchList = (limited: AbortSignal) => upstream.models(limited);
    const limit = { signal, after: this.#after, ms: REFRESH_TIMEOUT_MS };
    try {
      remember(await (list ? withTimeLimit(limit, fetchList) : fetchList(signal)));
      this.#unknown.delete(name);
      if (upstream.isReachable === undefined) this.#lost.delete(name);
    } catch (thrown) {
      if (!signal.aborted) this.#lost.add(name);
      const isKnown = list !== undefined && !this.#unknown.has(name);
      if (!isKnown && thrown instanceof ApiError && !signal.aborted) this.#unknown.set(name, thrown);
      // While others can serve, an unreachable upstream is not waited for again. A disconnected client shows
      // nothing.
      const isUnreachable = list !== undefined || !signal.aborted;
      // One whose list is unknown gets no requests, so it is asked again sooner.
      const ms = Math.min(this.#ttlMs, isKnown ? Infinity : REFRESH_TIMEOUT_MS);
      if (isUnreachable && this.#lists.size > 0) remember(list?.models ?? [], ms);
      throw thrown;
    }
  }

  /** Returns the names of upstreams that do not answer. Those with configured lists are asked as seldom. */
  async unreachable(upstreams: readonly Upstream[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    const due = upstreams.filter(({ name }) => (this.#askedUntil.get(name) ?? 0) <= this.#now());
    await Promise.all(
      due.map(async (upstream) => {
        if (upstream.isReachable === undefined) return;
        this.#askedUntil.set(upstream.name, this.#now() + this.#ttlMs);
        if (await upstream.isReachable(signal)) this.#lost.delete(upstream.name);
        else this.#lost.add(upstream.name);
      }),
    );
    return this.#lost;
  }

  /** Returns the error of an upstream whose models are unknown; null if all lists are known. */
  missing(upstreams: readonly Upstream[]): ApiError | null {
    const { name = '' } = upstreams.find((upstream) => this.#unknown.has(upstream.name)) ?? {};
    return this.#unknown.get(name) ?? null;
  }

  /** Forgets an upstream that was removed or changed. */
  forget(name: string): void {
    for (const cache of [this.#lists, this.#lost, this.#askedUntil, this.#unknown]) cache.delete(name);
  }

  /** Null if the upstream does not serve the model. */
  stateOf(upstream: string, id: string): ModelState | null {
    return this.#lists.get(upstream)?.models.find((model) => model.id === id)?.state ?? null;
  }
}
