import { ApiError } from '../../shared/errors.ts';
import type { ModelState, OriginModel } from '../../shared/generation.ts';
import type { After } from '../timers/request-timers.ts';
import { withTimeLimit } from '../timers/time-limit.ts';
import type { Upstream } from './upstream.ts';

/** So long a request waits for an upstream whose list it knows from before. */
const PATIENCE_MS = 1_000;

interface KnownList {
  readonly models: readonly OriginModel[];
  readonly until: number;
}

/** Which upstream serves which models; each one's list is believed for a short time, and longer while it is away. */
export class ModelLists {
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #after: After;
  readonly #known = new Map<string, KnownList>();
  /** What those upstreams fail with that have never told theirs. */
  readonly #unheard = new Map<string, ApiError>();

  /** @param now Unix milliseconds */
  constructor(ttlMs: number, now: () => number, after: After) {
    this.#ttlMs = ttlMs;
    this.#now = now;
    this.#after = after;
  }

  /**
   * The models of all upstreams, each once: as one tells that has it loaded, else the first.
   * @throws what the first upstream's request failed with, when no upstream ever said anything
   */
  async all(upstreams: readonly Upstream[], signal: AbortSignal): Promise<readonly OriginModel[]> {
    const failures: unknown[] = [];
    await Promise.all(
      upstreams.map((upstream) =>
        this.#refresh(upstream, signal).catch((thrown: unknown) => failures.push(thrown)),
      ),
    );
    const models = upstreams.flatMap(({ name }) => this.#known.get(name)?.models ?? []);
    if (models.length === 0 && failures.length > 0) throw failures[0];
    const ids = new Set(models.map(({ id }) => id));
    return [...ids].map((id) => {
      const offers = models.filter((model) => model.id === id);
      return offers.find(({ state }) => state === 'loaded') ?? offers[0]!;
    });
  }

  async #refresh(upstream: Upstream, signal: AbortSignal): Promise<void> {
    const known = this.#known.get(upstream.name);
    if (known && known.until > this.#now()) return;
    const { name } = upstream;
    const remember = (models: readonly OriginModel[]): void => {
      this.#known.set(name, { models, until: this.#now() + this.#ttlMs });
    };
    // One request asks, and the others go on meanwhile: an upstream that swallows what it is sent must not hold up all.
    if (known) remember(known.models);
    const ask = (limited: AbortSignal) => upstream.models(limited);
    const patience = { signal, after: this.#after, ms: PATIENCE_MS };
    try {
      remember(await (known ? withTimeLimit(patience, ask) : ask(signal)));
      this.#unheard.delete(name);
    } catch (thrown) {
      const heard = known !== undefined && !this.#unheard.has(name);
      if (!heard && thrown instanceof ApiError && !signal.aborted) this.#unheard.set(name, thrown);
      // While others can serve, nobody waits again and again for one that is away. A client that leaves tells nothing.
      const away = known !== undefined || !signal.aborted;
      if (away && this.#known.size > 0) remember(known?.models ?? []);
      throw thrown;
    }
  }

  /** Why a model that nobody offers may be there all the same; null when every upstream has told its models. */
  get missing(): ApiError | null {
    const [failure = null] = this.#unheard.values();
    return failure;
  }

  /** Null when the upstream does not serve it. */
  stateOf(upstream: string, id: string): ModelState | null {
    return this.#known.get(upstream)?.models.find((model) => model.id === id)?.state ?? null;
  }
}
