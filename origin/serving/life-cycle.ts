import {
  type Engine,
  expectedMs,
  type LimitOf,
  MARGIN,
  type ModelTerms,
  retryDelayMs,
} from './engine-state.ts';
import { type Actions, Engines } from './engines.ts';

/** What a request for a model gets. */
export type Verdict =
  | { readonly type: 'serve'; readonly engine: number }
  /** It is being loaded, now because of this request if not before. */
  | { readonly type: 'loading'; readonly retryAfterMs: number }
  /** It could not be loaded; null = it will not be tried again as it is. */
  | { readonly type: 'failed'; readonly retryAfterMs: number | null };

interface Deployment {
  terms: ModelTerms;
  /** Takes the requests. */
  current: Engine;
  /** Is loading, or failed to; takes the requests once it is loaded. */
  successor: Engine | null;
}

/**
 * The life of every engine of an origin, one per model as configured:
 *
 *     unloaded → waiting (for memory) → loading → loaded → unloading → unloaded
 *                                       loading → failed → waiting …
 *
 * An engine with users is never unloaded, none is loaded twice, and those that hold memory (loading, loaded, unloading)
 * never exceed their memory's limit. An engine that the configuration no longer names is retired: it takes no new request, is
 * unloaded after its last user, and then forgotten. No clock and no I/O: time comes in, actions go out.
 */
export class LifeCycle {
  readonly #models = new Map<string, Deployment>();
  readonly #engines: Engines;

  /** @param actions each is answered later by a call: loaded, loadFailed, or unloaded */
  constructor(actions: Actions) {
    this.#engines = new Engines(actions);
  }

  /** The engine that takes a model's requests. */
  current(name: string): Readonly<Engine> | undefined {
    return this.#models.get(name)?.current;
  }

  /** All that exist, retired ones included. */
  get engines(): readonly Readonly<Engine>[] {
    return this.#engines.all;
  }

  heldBytes(memory: string): number {
    return this.#engines.heldBytes(memory);
  }

  /**
   * Replaces the configuration. An engine whose key stays the same goes on, tried again if it had failed. Another key
   * means another engine: it is loaded beside the old one where both fit, and else after the old one's last user.
   */
  configure(models: readonly ModelTerms[], limitOf: LimitOf, now: number): void {
    this.#engines.limitOf = limitOf;
    const names = new Set(models.map(({ name }) => name));
    for (const [name, { current, successor }] of this.#models) {
      if (names.has(name)) continue;
      this.#models.delete(name);
      this.#engines.retire(successor);
      this.#engines.retire(current);
    }
    for (const terms of models) this.#deploy(terms);
    this.#admit(now);
  }

  #deploy(terms: ModelTerms): void {
    const deployed = this.#models.get(terms.name);
    if (deployed === undefined) {
      const current = this.#engines.engineFor(terms);
      this.#models.set(terms.name, { terms, current, successor: null });
      if (terms.loadAtStart) this.#engines.want(current);
      return;
    }
    deployed.terms = terms;
    const { current, successor } = deployed;
    if (successor?.key === terms.key && successor.phase !== 'failed') return;
    this.#engines.retire(successor);
    deployed.successor = null;
    if (current.key === terms.key) {
      if (current.phase === 'failed') this.#engines.toUnloaded(current);
      if (current.phase === 'unloaded' && terms.loadAtStart) this.#engines.want(current);
      return;
    }
    const next = this.#engines.engineFor(terms);
    if (current.phase === 'loaded' && next.phase !== 'loaded' && this.#engines.fits(next)) {
      deployed.successor = next;
      this.#engines.want(next);
      return;
    }
    const wanted = current.wanted || !['unloaded', 'failed', 'unloading'].includes(current.phase);
    deployed.current = next;
    this.#engines.retire(current);
    if (wanted || terms.loadAtStart) this.#engines.want(next);
  }

  /** A request for a configured model: what it gets. One that is served is released later. */
  request(name: string, now: number): Verdict {
    const { current: engine, successor } = this.#models.get(name)!;
    if (engine.phase === 'loaded') {
      if (successor?.phase === 'failed' && now >= successor.retryAt && this.#engines.fits(successor)) {
        this.#engines.want(successor);
        this.#admit(now);
      }
      engine.users += 1;
      return { type: 'serve', engine: engine.id };
    }
    const { retryAt } = engine;
    if (engine.phase === 'failed' && now < retryAt) {
      return { type: 'failed', retryAfterMs: retryAt === Infinity ? null : retryAt - now };
    }
    this.#engines.want(engine);
    this.#admit(now);
    const retryAfterMs = expectedMs(engine, now);
    engine.expectedAt = Math.max(engine.expectedAt, now + retryAfterMs);
    return { type: 'loading', retryAfterMs };
  }

  /** A request that was served has ended. */
  release(id: number, now: number): void {
    const engine = this.#engines.get(id);
    engine.users -= 1;
    engine.idleSince = now;
    if (engine.retired && engine.users === 0) this.#engines.unload(engine);
  }

  loaded(id: number, now: number): void {
    const engine = this.#engines.get(id);
    engine.phase = 'loaded';
    engine.idleSince = Math.max(now, engine.expectedAt);
    engine.loadMs = (now - engine.loadingSince) * MARGIN;
    engine.failures = 0;
    if (engine.retired) {
      this.#engines.unload(engine);
      return;
    }
    const deployed = this.#models.get(engine.name)!;
    if (deployed.successor !== engine) return;
    const old = deployed.current;
    deployed.current = engine;
    deployed.successor = null;
    this.#engines.retire(old);
  }

  loadFailed(id: number, fault: { readonly permanent: boolean }, now: number): void {
    const engine = this.#engines.get(id);
    if (engine.retired) this.#engines.forget(engine);
    else {
      engine.phase = 'failed';
      engine.failures += 1;
      engine.retryAt = fault.permanent ? Infinity : now + retryDelayMs(engine.failures);
    }
    this.#admit(now);
  }

  unloaded(id: number, now: number): void {
    const engine = this.#engines.get(id);
    if (engine.retired) this.#engines.forget(engine);
    else this.#engines.toUnloaded(engine);
    this.#admit(now);
  }

  /** Unloads what has been idle for its limit. */
  expire(now: number): void {
    for (const deployed of this.#models.values()) {
      const { current, terms } = deployed;
      if (expiryOf(current, terms) > now) continue;
      if (current.key === terms.key) this.#engines.unload(current);
      else this.#moveOn(deployed);
    }
  }

  /** When `expire` has something to do next; Infinity = not as things are. */
  get nextExpiry(): number {
    return Math.min(...[...this.#models.values()].map(({ current, terms }) => expiryOf(current, terms)));
  }

  /** Those that still serve only because their successors failed hold what is meant for others. */
  #admit(now: number): void {
    this.#engines.admit(now, (full) => {
      for (const deployed of this.#models.values()) {
        const { current, successor } = deployed;
        if (current.memory === full && successor?.phase === 'failed') this.#moveOn(deployed);
      }
    });
  }

  /** Gives up an engine of an earlier configuration: when it is loaded again, it shall be as configured now. */
  #moveOn(deployed: Deployment): void {
    const { current, successor, terms } = deployed;
    deployed.current = successor ?? this.#engines.engineFor(terms);
    deployed.successor = null;
    this.#engines.retire(current);
  }
}

function expiryOf({ phase, users, idleSince }: Engine, { idleMs }: ModelTerms): number {
  return phase === 'loaded' && users === 0 && idleMs !== null ? idleSince + idleMs : Infinity;
}
