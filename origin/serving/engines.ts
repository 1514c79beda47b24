/** What the life cycle needs to know about one configured model. */
export interface ModelSpec {
  readonly name: string;
  /** Equal keys can share one engine. */
  readonly key: string;
  /** Main memory or a device's memory. Engines in the same memory share its limit. */
  readonly memory: string;
  /** Bytes of weights and KV cache. */
  readonly bytes: number;
  readonly loadAtStart: boolean;
  /** Unload after this long without a request; null = never. */
  readonly idleMs: number | null;
  /** An estimate, used until a load was measured. */
  readonly expectedLoadMs: number;
}

/** Returns the most bytes that engines may hold in a memory. */
export type LimitOf = (memory: string) => number;

export type Phase = 'unloaded' | 'waiting' | 'loading' | 'loaded' | 'unloading' | 'failed';

export interface ModelEngine extends Pick<ModelSpec, 'name' | 'key' | 'memory' | 'bytes'> {
  readonly id: number;
  phase: Phase;
  /** True if the engine is no longer configured, or was replaced. */
  retired: boolean;
  /** True if a request needs it while it is being unloaded. */
  wanted: boolean;
  /** Requests that it serves now. */
  users: number;
  /** Consecutive failures to load. */
  failures: number;
  /** Expected load time: the last one with a margin, or the estimate. */
  loadMs: number;
  loadingSince: number;
  /** When clients that were told to retry will be back. */
  expectedAt: number;
  /** Start of the idle time; in the future while a client is expected back. */
  idleSince: number;
  /** After a failure: when to try again; Infinity = never with this configuration. */
  retryAt: number;
}

const holdsMemory = ({ phase }: Pick<ModelEngine, 'phase'>): boolean =>
  phase === 'loading' || phase === 'loaded' || phase === 'unloading';

/** An overdue load is expected to take at least this fraction of its time longer. */
const OVERDUE = 1 / 4;

/** The next load is expected to take this many times the last one. */
export const MARGIN = 1.5;

/** Returns the expected time until the engine is loaded, in whole seconds. Waits for memory are unknown. */
export function expectedMs({ phase, loadMs, loadingSince }: ModelEngine, now: number): number {
  const elapsed = phase === 'loading' ? now - loadingSince : 0;
  return Math.max(1, Math.ceil(Math.max(loadMs - elapsed, elapsed * OVERDUE) / 1000)) * 1000;
}

/** Starts loading or unloading an engine. */
export interface Actions {
  load(engine: number): void;
  unload(engine: number): void;
}

/** All engines, and the queue for the memory that they share. Knows nothing about models. */
export class Engines {
  /** A lower limit does not evict engines that hold memory already. */
  limitOf: LimitOf = () => Infinity;
  readonly #actions: Actions;
  /** Includes retired engines. */
  readonly #engines = new Map<number, ModelEngine>();
  /** First come, first loaded, per memory: an engine that does not fit yet is not overtaken. */
  #waiting: ModelEngine[] = [];
  #lastId = 0;

  constructor(actions: Actions) {
    this.#actions = actions;
  }

  get all(): readonly ModelEngine[] {
    return [...this.#engines.values()];
  }

  /** The engine must exist. */
  get(id: number): ModelEngine {
    return this.#engines.get(id)!;
  }

  /** Returns a new engine, or revives a retired one with the same key. */
  engineFor({ name, key, memory, bytes, expectedLoadMs }: ModelSpec): ModelEngine {
    for (const engine of this.#engines.values()) {
      const there = engine.phase === 'loaded' || engine.phase === 'loading';
      if (!there || !engine.retired || engine.name !== name || engine.key !== key) continue;
      engine.retired = false;
      return engine;
    }
    this.#lastId += 1;
    const engine: ModelEngine = {
      id: this.#lastId,
      name,
      key,
      memory,
      bytes,
      loadMs: expectedLoadMs,
      phase: 'unloaded',
      retired: false,
      wanted: false,
      users: 0,
      failures: 0,
      loadingSince: 0,
      expectedAt: 0,
      idleSince: 0,
      retryAt: 0,
    };
    this.#engines.set(engine.id, engine);
    return engine;
  }

  forget({ id }: ModelEngine): void {
    this.#engines.delete(id);
  }

  heldBytes(memory: string): number {
    return bytesIn(this.all.filter(holdsMemory), memory);
  }

  /** Reports whether the engine fits now, behind all that wait for the same memory. */
  fits(engine: ModelEngine): boolean {
    if (holdsMemory(engine)) return true;
    return this.#hasRoom(engine, bytesIn(this.#waiting, engine.memory));
  }

  /** Queues a load; if the engine is being unloaded, it is loaded again afterwards. */
  want(engine: ModelEngine): void {
    if (engine.phase === 'unloading') engine.wanted = true;
    if (engine.phase !== 'unloaded' && engine.phase !== 'failed') return;
    engine.phase = 'waiting';
    this.#waiting.push(engine);
  }

  /** Loads waiting engines while there is room. @param onFull called for each memory without room */
  admit(now: number, onFull: (memory: string) => void): void {
    const full = new Set<string>();
    for (const next of this.#waiting) {
      const { memory } = next;
      if (full.has(memory)) continue;
      if (!this.#hasRoom(next)) {
        full.add(memory);
        onFull(memory);
        continue;
      }
      this.#waiting = this.#waiting.filter((waiting) => waiting !== next);
      next.phase = 'loading';
      next.loadingSince = now;
      this.#actions.load(next.id);
    }
  }

  unload(engine: ModelEngine): void {
    engine.phase = 'unloading';
    this.#actions.unload(engine.id);
  }

  toUnloaded(engine: ModelEngine): void {
    engine.phase = 'unloaded';
    if (engine.wanted) this.want(engine);
    engine.wanted = false;
  }

  /** Stops new requests, unloads after the last user, then forgets the engine. */
  retire(engine: ModelEngine | null): void {
    if (engine === null) return;
    engine.retired = true;
    if (engine.phase === 'loaded' && engine.users === 0) this.unload(engine);
    if (holdsMemory(engine)) return;
    this.#waiting = this.#waiting.filter((waiting) => waiting !== engine);
    this.forget(engine);
  }

  #hasRoom({ memory, bytes }: ModelEngine, ahead = 0): boolean {
    return this.heldBytes(memory) + ahead + bytes <= this.limitOf(memory);
  }
}

const bytesIn = (engines: readonly ModelEngine[], memory: string): number =>
  engines.reduce((sum, engine) => sum + (engine.memory === memory ? engine.bytes : 0), 0);
