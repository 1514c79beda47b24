import type { ModelState, OriginModel } from '../../shared/generation.ts';
import type { Upstream } from './upstream.ts';

interface KnownList {
  readonly models: readonly OriginModel[];
  readonly until: number;
}

/** Which upstream serves which models; each one's list is believed for a short time, and longer while it is away. */
export class ModelLists {
  readonly #ttlMs: number;
  readonly #now: () => number;
  readonly #known = new Map<string, KnownList>();

  constructor(ttlMs: number, now: () => number) {
    this.#ttlMs = ttlMs;
    this.#now = now;
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
    const remember = (models: readonly OriginModel[]): void => {
      this.#known.set(upstream.name, { models, until: this.#now() + this.#ttlMs });
    };
    try {
      remember(await upstream.models(signal));
    } catch (thrown) {
      // While others can serve, nobody waits again and again for one that is away.
      if (this.#known.size > 0) remember(known?.models ?? []);
      throw thrown;
    }
  }

  /** Null when the upstream does not serve it. */
  stateOf(upstream: string, id: string): ModelState | null {
    return this.#known.get(upstream)?.models.find((model) => model.id === id)?.state ?? null;
  }
}
