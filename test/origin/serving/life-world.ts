import { expect } from 'vitest';
import type { ModelSpec } from '../../../origin/serving/engines.ts';
import { LifeCycle } from '../../../origin/serving/life-cycle.ts';

interface Job {
  readonly kind: 'load' | 'unload';
  readonly engine: number;
}

/**
 * Model of the environment of a life cycle: the engines in memory, their requests and the unfinished jobs. It
 * ignores the life cycle's own states, and checks each load and unload against the engines in memory.
 */
export class LifeWorld {
  readonly #life: LifeCycle;
  /** By memory. */
  readonly #limits: Readonly<Record<string, number>>;
  /** Loading, loaded or unloading → bytes and key. */
  readonly #present = new Map<
    number,
    { readonly name: string; readonly key: string; readonly memory: string; readonly bytes: number }
  >();
  readonly #loaded = new Set<number>();
  readonly #jobs: Job[] = [];
  /** The engine of every open stream. */
  readonly #streams: number[] = [];
  #terms: readonly ModelSpec[] = [];
  /** Key of a model → not to be loaded before. */
  readonly #notBefore = new Map<string, number>();
  #now = 0;
  readonly seen = { served: 0, failed: 0, unloads: 0, replaced: 0, waited: 0 };

  constructor(limits: Readonly<Record<string, number>>) {
    this.#limits = limits;
    this.#life = new LifeCycle({
      load: (engine) => this.#load(engine),
      unload: (engine) => this.#unload(engine),
    });
  }

  get configured(): readonly string[] {
    return this.#terms.map(({ name }) => name);
  }

  #load(id: number): void {
    const { name, key, memory, bytes } = this.#life.engines.find((engine) => engine.id === id)!;
    expect(this.#terms).toContainEqual(expect.objectContaining({ name, key }));
    expect(this.#present.has(id)).toBe(false);
    for (const [other, there] of this.#present) {
      const same = there.name === name && there.key === key;
      const leaving = this.#jobs.some((job) => job.kind === 'unload' && job.engine === other);
      expect(same && !leaving).toBe(false);
    }
    expect(this.#now).toBeGreaterThanOrEqual(this.#notBefore.get(`${name}${key}`) ?? 0);
    this.#present.set(id, { name, key, memory, bytes });
    const sharing = [...this.#present.values()].filter((there) => there.memory === memory);
    const held = sharing.reduce((sum, there) => sum + there.bytes, 0);
    expect(held).toBeLessThanOrEqual(this.#limits[memory]!);
    this.#jobs.push({ kind: 'load', engine: id });
  }

  #unload(id: number): void {
    expect(this.#loaded.has(id)).toBe(true);
    expect(this.#streams).not.toContain(id);
    this.#loaded.delete(id);
    this.#jobs.push({ kind: 'unload', engine: id });
    this.seen.unloads += 1;
  }

  request(name: string): boolean {
    const terms = this.#terms.find((one) => one.name === name);
    if (terms === undefined) {
      expect(this.#life.current(name)).toBeUndefined();
      return false;
    }
    const verdict = this.#life.request(name, this.#now);
    if (verdict.type === 'serve') {
      expect(this.#loaded.has(verdict.engine)).toBe(true);
      expect(this.#present.get(verdict.engine)?.name).toBe(name);
      if (this.#present.get(verdict.engine)?.key !== terms.key) this.seen.replaced += 1;
      this.#streams.push(verdict.engine);
      this.seen.served += 1;
      return true;
    }
    if (verdict.type === 'failed') {
      expect(verdict.retryAfterMs ?? 1).toBeGreaterThan(0);
      this.seen.failed += 1;
      return false;
    }
    expect(verdict.retryAfterMs).toBeGreaterThanOrEqual(0);
    if (!this.#jobs.some(({ engine }) => engine === this.#life.current(name)?.id)) this.seen.waited += 1;
    return false;
  }

  /** Ends a stream, completed or disconnected. */
  release(which: number): void {
    if (this.#streams.length === 0) return;
    const [engine] = this.#streams.splice(which % this.#streams.length, 1);
    this.#life.release(engine!, this.#now);
  }

  answer(which: number, outcome: string): void {
    if (this.#jobs.length === 0) return;
    const [job] = this.#jobs.splice(which % this.#jobs.length, 1);
    const { kind, engine } = job!;
    if (kind === 'unload') {
      this.#present.delete(engine);
      this.#life.unloaded(engine, this.#now);
    } else if (outcome === 'done') {
      this.#loaded.add(engine);
      this.#life.loaded(engine, this.#now);
    } else {
      const { name, key } = this.#present.get(engine)!;
      const permanent = outcome === 'fails for good';
      this.#notBefore.set(`${name}${key}`, permanent ? Infinity : this.#now + 2_000);
      this.#present.delete(engine);
      this.#life.loadFailed(engine, { permanent }, this.#now);
    }
  }

  wait(ms: number): void {
    this.#now += ms;
    this.#life.expire(this.#now);
    expect(this.#life.nextExpiry).toBeGreaterThan(this.#now);
  }

  configure(terms: readonly ModelSpec[]): void {
    this.#terms = terms;
    // What had failed may be tried again.
    this.#notBefore.clear();
    this.#life.configure(terms, (memory) => this.#limits[memory]!, this.#now);
  }

  check(): void {
    expect(new Set(this.#life.engines.filter(({ phase }) => phase === 'loaded').map(({ id }) => id))).toEqual(
      this.#loaded,
    );
    for (const engine of this.#streams) expect(this.#loaded.has(engine)).toBe(true);
    for (const engine of this.#life.engines) {
      expect(engine.users).toBe(this.#streams.filter((id) => id === engine.id).length);
    }
    for (const [memory, limit] of Object.entries(this.#limits)) {
      expect(this.#life.heldBytes(memory)).toBeLessThanOrEqual(limit);
    }
  }

  /** All streams end and everything begun is finished: nothing that is not configured stays. */
  settle(): void {
    while (this.#streams.length > 0) this.release(0);
    while (this.#jobs.length > 0) this.answer(0, 'done');
    this.check();
    expect(this.#life.engines.filter(({ phase }) => phase === 'waiting')).toEqual([]);
    for (const { name, key } of this.#terms) {
      // What could not be replaced goes on.
      const failed = this.#notBefore.has(`${name}${key}`);
      expect(failed || this.#life.current(name)?.key === key).toBe(true);
    }
    expect(new Set(this.#life.engines.map(({ name }) => name))).toEqual(new Set(this.configured));
  }

  /** Asked again after each time it names, a model that can be loaded serves. */
  serveEventually(name: string): void {
    if (this.#notBefore.get(`${name}${this.#life.current(name)?.key}`) === Infinity) return;
    for (let attempt = 0; attempt < 5; attempt += 1) {
      if (this.request(name)) return;
      this.wait(400_000);
      while (this.#jobs.length > 0) this.answer(0, 'done');
    }
    throw new Error(`${name} is never served`);
  }
}
