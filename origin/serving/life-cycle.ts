import {
  type Engine,
  expectedMs,
  holdsMemory,
  type LimitOf,
  MARGIN,
  type ModelTerms,
  retryDelayMs,
} from './engine-state.ts';

/** What a request for a model gets. */
export type Verdict =
  | { readonly type: 'serve'; readonly engine: number }
  /** It is being loaded, now because of this request if not before. */
  | { readonly type: 'loading'; readonly retryAfterMs: number }
  /** It could not be loaded; null = it will not be tried again as it is. */
  | { readonly type: 'failed'; readonly retryAfterMs: number | null };

/** What the life cycle has others do. Each is answered later by a call: loaded, loadFailed, or unloaded. */
export interface Actions {
  load(engine: number): void;
  unload(engine: number): void;
}

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
  readonly #actions: Actions;
  readonly #models = new Map<string, Deployment>();
  /** All there are, retired ones too. */
  readonly #engines = new Map<number, Engine>();
  /** First come, first loaded: who does not fit yet is not overtaken in its memory. */
  #waiting: Engine[] = [];
  #limitOf: LimitOf = () => Infinity;
  #lastId = 0;

  constructor(actions: Actions) {
    this.#actions = actions;
  }

  /** The engine that takes a model's requests. */
  current(name: string): Readonly<Engine> | undefined {
    return this.#models.get(name)?.current;
  }

  /** All that exist, retired ones included. */
  get engines(): readonly Readonly<Engine>[] {
    return [...this.#engines.values()];
  }

  heldBytes(memory: string): number {
    return bytesIn(this.engines.filter(holdsMemory), memory);
  }

  /**
   * Replaces the configuration. An engine whose key stays the same goes on, tried again if it had failed. Another key
   * means another engine: it is loaded beside the old one where both fit, and else after the old one's last user.
   */
  configure(models: readonly ModelTerms[], limitOf: LimitOf, now: number): void {
    this.#limitOf = limitOf;
    const names = new Set(models.map(({ name }) => name));
    for (const [name, { current, successor }] of this.#models) {
      if (names.has(name)) continue;
      this.#models.delete(name);
      this.#retire(successor);
      this.#retire(current);
    }
    for (const terms of models) this.#deploy(terms);
    this.#admit(now);
  }

  #deploy(terms: ModelTerms): void {
    const deployed = this.#models.get(terms.name);
    if (deployed === undefined) {
      const current = this.#engineFor(terms);
      this.#models.set(terms.name, { terms, current, successor: null });
      if (terms.loadAtStart) this.#want(current);
      return;
    }
    deployed.terms = terms;
    const { current, successor } = deployed;
    if (successor?.key === terms.key && successor.phase !== 'failed') return;
    this.#retire(successor);
    deployed.successor = null;
    if (current.key === terms.key) {
      if (current.phase === 'failed') this.#toUnloaded(current);
      if (current.phase === 'unloaded' && terms.loadAtStart) this.#want(current);
      return;
    }
    const next = this.#engineFor(terms);
    if (current.phase === 'loaded' && next.phase !== 'loaded' && this.#fits(next)) {
      deployed.successor = next;
      this.#want(next);
      return;
    }
    const wanted = current.wanted || !['unloaded', 'failed', 'unloading'].includes(current.phase);
    deployed.current = next;
    this.#retire(current);
    if (wanted || terms.loadAtStart) this.#want(next);
  }

  /** A request for a configured model: what it gets. One that is served is released later. */
  request(name: string, now: number): Verdict {
    const { current: engine, successor } = this.#models.get(name)!;
    if (engine.phase === 'loaded') {
      if (successor?.phase === 'failed' && now >= successor.retryAt && this.#fits(successor)) {
        this.#want(successor);
        this.#admit(now);
      }
      engine.users += 1;
      return { type: 'serve', engine: engine.id };
    }
    const { retryAt } = engine;
    if (engine.phase === 'failed' && now < retryAt) {
      return { type: 'failed', retryAfterMs: retryAt === Infinity ? null : retryAt - now };
    }
    this.#want(engine);
    this.#admit(now);
    const retryAfterMs = expectedMs(engine, now);
    engine.expectedAt = Math.max(engine.expectedAt, now + retryAfterMs);
    return { type: 'loading', retryAfterMs };
  }

  /** A request that was served has ended. */
  release(id: number, now: number): void {
    const engine = this.#engines.get(id)!;
    engine.users -= 1;
    engine.idleSince = now;
    if (engine.retired && engine.users === 0) this.#unload(engine);
  }

  loaded(id: number, now: number): void {
    const engine = this.#engines.get(id)!;
    engine.phase = 'loaded';
    engine.idleSince = Math.max(now, engine.expectedAt);
    engine.loadMs = (now - engine.loadingSince) * MARGIN;
    engine.failures = 0;
    if (engine.retired) {
      this.#unload(engine);
      return;
    }
    const deployed = this.#models.get(engine.name)!;
    if (deployed.successor !== engine) return;
    const old = deployed.current;
    deployed.current = engine;
    deployed.successor = null;
    this.#retire(old);
  }

  loadFailed(id: number, fault: { readonly permanent: boolean }, now: number): void {
    const engine = this.#engines.get(id)!;
    if (engine.retired) this.#engines.delete(id);
    else {
      engine.phase = 'failed';
      engine.failures += 1;
      engine.retryAt = fault.permanent ? Infinity : now + retryDelayMs(engine.failures);
    }
    this.#admit(now);
  }

  unloaded(id: number, now: number): void {
    const engine = this.#engines.get(id)!;
    if (engine.retired) this.#engines.delete(id);
    else this.#toUnloaded(engine);
    this.#admit(now);
  }

  /** Unloads what has been idle for its limit. */
  expire(now: number): void {
    for (const deployed of this.#models.values()) {
      const { current, terms } = deployed;
      if (expiryOf(current, terms) > now) continue;
      if (current.key === terms.key) this.#unload(current);
      else this.#moveOn(deployed);
    }
  }

  /** When `expire` has something to do next; Infinity = not as things are. */
  get nextExpiry(): number {
    return Math.min(...[...this.#models.values()].map(({ current, terms }) => expiryOf(current, terms)));
  }

  /** A new one, or a retired one of the same key that is still there. */
  #engineFor({ name, key, memory, bytes, expectedLoadMs }: ModelTerms): Engine {
    for (const engine of this.#engines.values()) {
      const there = engine.phase === 'loaded' || engine.phase === 'loading';
      if (!there || !engine.retired || engine.name !== name || engine.key !== key) continue;
      engine.retired = false;
      return engine;
    }
    this.#lastId += 1;
    const engine: Engine = {
      ...{ id: this.#lastId, name, key, memory, bytes, loadMs: expectedLoadMs },
      ...{ phase: 'unloaded', retired: false, wanted: false, users: 0, failures: 0 },
      ...{ loadingSince: 0, expectedAt: 0, idleSince: 0, retryAt: 0 },
    };
    this.#engines.set(engine.id, engine);
    return engine;
  }

  #want(engine: Engine): void {
    if (engine.phase === 'unloading') engine.wanted = true;
    if (engine.phase !== 'unloaded' && engine.phase !== 'failed') return;
    engine.phase = 'waiting';
    this.#waiting.push(engine);
  }

  /** Gives up an engine of an earlier configuration: when it is loaded again, it shall be as configured now. */
  #moveOn(deployed: Deployment): void {
    const { current, successor, terms } = deployed;
    deployed.current = successor ?? this.#engineFor(terms);
    deployed.successor = null;
    this.#retire(current);
  }

  #toUnloaded(engine: Engine): void {
    engine.phase = 'unloaded';
    if (engine.wanted) this.#want(engine);
    engine.wanted = false;
  }

  /** Now, with all that wait for memory ahead of it. */
  #fits(engine: Engine): boolean {
    if (holdsMemory(engine)) return true;
    return this.#hasRoom(engine, bytesIn(this.#waiting, engine.memory));
  }

  #hasRoom({ memory, bytes }: Engine, ahead = 0): boolean {
    return this.heldBytes(memory) + ahead + bytes <= this.#limitOf(memory);
  }

  #admit(now: number): void {
    const full = new Set<string>();
    for (const next of this.#waiting) {
      const { memory } = next;
      if (full.has(memory)) continue;
      if (!this.#hasRoom(next)) {
        full.add(memory);
        // Those that still serve only because their successors failed hold what is meant for others.
        for (const deployed of this.#models.values()) {
          const { current, successor } = deployed;
          if (current.memory === memory && successor?.phase === 'failed') this.#moveOn(deployed);
        }
        continue;
      }
      this.#waiting = this.#waiting.filter((other) => other !== next);
      next.phase = 'loading';
      next.loadingSince = now;
      this.#actions.load(next.id);
    }
  }

  #unload(engine: Engine): void {
    engine.phase = 'unloading';
    this.#actions.unload(engine.id);
  }

  #retire(engine: Engine | null): void {
    if (engine === null) return;
    engine.retired = true;
    if (engine.phase === 'loaded' && engine.users === 0) this.#unload(engine);
    if (holdsMemory(engine)) return;
    this.#waiting = this.#waiting.filter((other) => other !== engine);
    this.#engines.delete(engine.id);
  }
}

const bytesIn = (engines: readonly Engine[], memory: string): number =>
  engines.reduce((sum, engine) => sum + (engine.memory === memory ? engine.bytes : 0), 0);

function expiryOf({ phase, users, idleSince }: Engine, { idleMs }: ModelTerms): number {
  return phase === 'loaded' && users === 0 && idleMs !== null ? idleSince + idleMs : Infinity;
}
