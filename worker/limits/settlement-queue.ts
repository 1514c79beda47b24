import type { Ending } from './protocol.ts';

/** So long an ending waits for a reservation to go with, or for others. */
const GATHER_MS = 10;
/** A call that was to take it along and says nothing for so long has died with its request. */
const PATIENCE_MS = 1000;
const ATTEMPTS = 3;
const RETRY_MS = 250;

type Call<T> = (endings: readonly Ending[]) => Promise<T>;

interface Entry {
  readonly ending: Ending;
  /** Whether the call that has it was heard; null while it waits for one. */
  heard: Promise<boolean> | null;
  /** Told or given up: a call that has it and fails late does not bring it back. */
  over: boolean;
}

/**
 * Endings on their way to their limiters. They go along with the next reservation, which the limiter decides after them,
 * or together a moment later: a call costs more than an ending, and nobody's answer waits for one. An ending may be told
 * twice. One queue per isolate; it holds no I/O objects, which belong to the request that made them.
 */
export class EndingQueue {
  readonly #waiting = new Map<string, Set<Entry>>();
  readonly #pause: (ms: number) => Promise<unknown>;

  constructor(pause: (ms: number) => Promise<unknown>) {
    this.#pause = pause;
  }

  /** Gives a call all that wait for this limiter. Should it fail, they wait again. */
  async along<T>(limiter: string, call: Call<T>): Promise<T> {
    const entries = [...(this.#waiting.get(limiter) ?? [])];
    this.#waiting.delete(limiter);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    for (const entry of entries) entry.heard = promise;
    try {
      const answer = await call(entries.map(({ ending }) => ending));
      resolve(true);
      return answer;
    } catch (thrown) {
      for (const entry of entries) this.#wait(limiter, entry);
      resolve(false);
      throw thrown;
    }
  }

  /** Tells an ending, by `call` unless another takes it along; given up after a few failures. */
  async tell(limiter: string, ending: Ending, call: Call<unknown>): Promise<void> {
    const entry: Entry = { ending, heard: null, over: false };
    this.#wait(limiter, entry);
    await this.#pause(GATHER_MS);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const heard = await (entry.heard
        ? Promise.race([entry.heard, this.#pause(PATIENCE_MS)])
        : this.along(limiter, call).then(
            () => true,
            () => false,
          ));
      if (heard) break;
      this.#wait(limiter, entry);
      // A limiter that fails at once may need a moment; meanwhile a reservation may take it along.
      await this.#pause(RETRY_MS);
    }
    entry.over = true;
    const others = this.#waiting.get(limiter);
    others?.delete(entry);
    if (others?.size === 0) this.#waiting.delete(limiter);
  }

  #wait(limiter: string, entry: Entry): void {
    if (entry.over) return;
    entry.heard = null;
    const others = this.#waiting.get(limiter) ?? new Set();
    this.#waiting.set(limiter, others.add(entry));
  }
}
