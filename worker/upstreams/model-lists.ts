import { ApiError } from '@continuo/shared/errors.ts';
import type { ModelState, OriginModel } from '@continuo/shared/origin-model.ts';
import type { After } from '@continuo/shared/time-limit.ts';
import { withTimeLimit } from '@continuo/shared/time-limit.ts';
import type { Upstream } from './upstream.ts';

/** Milliseconds that a request waits for a new list while the old one is known. */
const REFRESH_TIMEOUT_MS = 1_000;

/** What is known of one upstream. */
interface KnownUpstream {
  /** Its last list; null if it has never returned one. Empty if it does not answer and others do. */
  models: readonly OriginModel[] | null;
  /** When the list is fetched again, in Unix milliseconds. */
  until: number;
  /** Whether it did not answer when it was last asked. */
  isLost: boolean;
  /** When an upstream with a configured list is asked again whether it answers, in Unix milliseconds. */
  askedUntil: number;
  /** The error of an upstream that has never returned a list. */
  error: ApiError | null;
}

/**
 * Caches each upstream's list of models for a short time, and for longer while the upstream is unreachable.
 */
export class ModelLists {
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #after: After;
  readonly #upstreams = new Map<string, KnownUpstream>();

  /** @param now Unix milliseconds */
  constructor(ttlMs: number, now: () => number, after: After) {
    this.#ttlMs = ttlMs;
    this.#now = now;
    this.#after = after;
  }

  #upstream(name: string): KnownUpstream {
    const unknown = { models: null, until: 0, isLost: false, askedUntil: 0, error: null };
    const upstream = this.#upstreams.get(name) ?? unknown;
    this.#upstreams.set(name, upstream);
    return upstream;
  }

  /**
   * Returns the models of all upstreams. A model of several upstreams is described by one that has it loaded,
   * else by the first one that could read its files.
   * @throws the error of the first upstream, if no list is known
   */
  async all(upstreams: readonly Upstream[], signal: AbortSignal): Promise<readonly OriginModel[]> {
    const failures: unknown[] = [];
    const lists = await Promise.all(
      upstreams.map(async (upstream) => {
        const cached = this.#upstream(upstream.name);
        await this.#refresh(upstream, cached, signal).catch((thrown: unknown) => failures.push(thrown));
        return cached.models ?? [];
      }),
    );
    const models = lists.flat();
    if (models.length === 0 && failures.length > 0) throw failures[0];
    const ids = new Set(models.map(({ id }) => id));
    return [...ids].map((id) => {
      const offers = models.filter((model) => model.id === id);
      const readable = offers.find(({ state }) => state !== 'unavailable');
      return offers.find(({ state }) => state === 'loaded') ?? readable ?? offers[0]!;
    });
  }

  async #refresh(upstream: Upstream, cached: KnownUpstream, signal: AbortSignal): Promise<void> {
    const list = cached.models;
    if (list && cached.until > this.#now()) return;
    const remember = (models: readonly OriginModel[], ms = this.#ttlMs): void => {
      cached.models = models;
      cached.until = this.#now() + ms;
    };
    // One request refreshes the list and the others use the old one, so that a hung upstream does not delay
    // them.
    if (list) remember(list);
    const fetchList = (limited: AbortSignal) => upstream.models(limited);
    const limit = { signal, after: this.#after, ms: REFRESH_TIMEOUT_MS };
    try {
      remember(await (list ? withTimeLimit(limit, fetchList) : fetchList(signal)));
      cached.error = null;
      if (upstream.isReachable === undefined) cached.isLost = false;
    } catch (thrown) {
      if (!signal.aborted) cached.isLost = true;
      const isKnown = list !== null && cached.error === null;
      if (!isKnown && thrown instanceof ApiError && !signal.aborted) cached.error = thrown;
      // While others can serve, an unreachable upstream is not waited for again. A disconnected client shows
      // nothing.
      const isUnreachable = list !== null || !signal.aborted;
      // One whose list is unknown gets no requests, so it is asked again sooner.
      const ms = Math.min(this.#ttlMs, isKnown ? Infinity : REFRESH_TIMEOUT_MS);
      const isAnyKnown = [...this.#upstreams.values()].some((each) => each.models !== null);
      if (isUnreachable && isAnyKnown) remember(list ?? [], ms);
      throw thrown;
    }
  }

  /** Returns the names of upstreams that do not answer. Those with configured lists are asked as seldom. */
  async unreachable(upstreams: readonly Upstream[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    await Promise.all(
      upstreams.map(async (upstream) => {
        const cached = this.#upstream(upstream.name);
        if (upstream.isReachable === undefined || cached.askedUntil > this.#now()) return;
        cached.askedUntil = this.#now() + this.#ttlMs;
        cached.isLost = !(await upstream.isReachable(signal));
      }),
    );
    return new Set(upstreams.map(({ name }) => name).filter((name) => this.#upstream(name).isLost));
  }

  /** Returns the error of an upstream whose models are unknown; null if all lists are known. */
  missing(upstreams: readonly Upstream[]): ApiError | null {
    return upstreams.map(({ name }) => this.#upstream(name).error).find((error) => error !== null) ?? null;
  }

  /** Forgets an upstream that was removed or changed. */
  forget(name: string): void {
    this.#upstreams.delete(name);
  }

  /** Null if the upstream does not serve the model. */
  stateOf(upstream: string, id: string): ModelState | null {
    return this.#upstreams.get(upstream)?.models?.find((model) => model.id === id)?.state ?? null;
  }
}
