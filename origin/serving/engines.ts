import { type Engine, holdsMemory, type LimitOf, type ModelTerms } from './engine-state.ts';

/** What is to be done with an engine. */
export interface Actions {
  load(engine: number): void;
  unload(engine: number): void;
}

/** All engines there are, and their turns for the memory that they share; of models it knows nothing. */
export class Engines {
  /** Most bytes of a memory; who holds more already may keep it. */
  limitOf: LimitOf = () => Infinity;
  readonly #actions: Actions;
  /** Retired ones too. */
  readonly #engines = new Map<number, Engine>();
  /** First come, first loaded: who does not fit yet is not overtaken in its memory. */
  #waiting: Engine[] = [];
  #lastId = 0;

  constructor(actions: Actions) {
    this.#actions = actions;
  }

  get all(): readonly Engine[] {
    return [...this.#engines.values()];
  }

  /** One that has not been forgotten. */
  get(id: number): Engine {
    return this.#engines.get(id)!;
  }

  /** A new one, or a retired one of the same key that is still there. */
  engineFor({ name, key, memory, bytes, expectedLoadMs }: ModelTerms): Engine {
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

  forget({ id }: Engine): void {
    this.#engines.delete(id);
  }

  heldBytes(memory: string): number {
    return bytesIn(this.all.filter(holdsMemory), memory);
  }

  /** Now, with all that wait for memory ahead of it. */
  fits(engine: Engine): boolean {
    if (holdsMemory(engine)) return true;
    return this.#hasRoom(engine, bytesIn(this.#waiting, engine.memory));
  }

  /** It shall be loaded, as soon as it has been unloaded if that is under way. */
  want(engine: Engine): void {
    if (engine.phase === 'unloading') engine.wanted = true;
    if (engine.phase !== 'unloaded' && engine.phase !== 'failed') return;
    engine.phase = 'waiting';
    this.#waiting.push(engine);
  }

  /** Has those that wait loaded as far as there is room. @param onFull is told of each memory that has too little */
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
      this.#waiting = this.#waiting.filter((other) => other !== next);
      next.phase = 'loading';
      next.loadingSince = now;
      this.#actions.load(next.id);
    }
  }

  unload(engine: Engine): void {
    engine.phase = 'unloading';
    this.#actions.unload(engine.id);
  }

  toUnloaded(engine: Engine): void {
    engine.phase = 'unloaded';
    if (engine.wanted) this.want(engine);
    engine.wanted = false;
  }

  /** It takes no new request, is unloaded after its last user, and then forgotten. */
  retire(engine: Engine | null): void {
    if (engine === null) return;
    engine.retired = true;
    if (engine.phase === 'loaded' && engine.users === 0) this.unload(engine);
    if (holdsMemory(engine)) return;
    this.#waiting = this.#waiting.filter((other) => other !== engine);
    this.forget(engine);
  }

  #hasRoom({ memory, bytes }: Engine, ahead = 0): boolean {
    return this.heldBytes(memory) + ahead + bytes <= this.limitOf(memory);
  }
}

const bytesIn = (engines: readonly Engine[], memory: string): number =>
  engines.reduce((sum, engine) => sum + (engine.memory === memory ? engine.bytes : 0), 0);
