import type { RowAhead } from '../block-kernel.ts';

/** More rows than this are left to whoever asks for them. */
export const MOST_JOBS = 256;
/** At most so many coldnesses of one row: its sampler's and, for logprobs, 1. */
export const MOST_COLDNESSES = 2;

const [ROUND, NEXT, COUNT, BUSY] = [0, 1, 2, 3] as const;
const HEADER = 4;
/** Per job, as integers: row, length, results, the round in which it was done, whether its maxima are sound. */
const INTEGERS = 5;
/** Per job, as floats: the largest logit, the coldnesses. */
const FLOATS = 1 + MOST_COLDNESSES;
const BYTES = MOST_JOBS * (8 * FLOATS + 4 * INTEGERS) + 4 * HEADER;

/**
 * The rows of one step as a list in shared memory that several threads work off, each taking the next one. Nobody waits
 * for anybody: who asks for a row that is not done yet reduces it himself, and a round begins only when nobody is at work
 * on the one before.
 */
export class ReductionJobs {
  readonly memory: SharedArrayBuffer;
  readonly #integers: Int32Array;
  readonly #floats: Float64Array;

  /** @param memory another thread's list; a closed one of its own unless given */
  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(BYTES);
    this.#floats = new Float64Array(this.memory, 0, MOST_JOBS * FLOATS);
    this.#integers = new Int32Array(this.memory, this.#floats.byteLength);
    if (memory === undefined) this.close();
  }

  /**
   * Begins a round, unless somebody is still busy with the last one, which must have been closed.
   * @param resultsOf where what is found of a row goes, by its address: each block's maximum, then its sum at one coldness
   *   after the other; addresses in bytes of the rows' memory
   */
  open(rows: readonly RowAhead[], resultsOf: (row: number) => number): boolean {
    const integers = this.#integers;
    if (Atomics.load(integers, BUSY) > 0) return false;
    const count = Math.min(rows.length, MOST_JOBS);
    for (let index = 0; index < count; index++) {
      const { row, coldnesses } = rows[index]!;
      const at = HEADER + index * INTEGERS;
      integers[at] = row.byteOffset;
      integers[at + 1] = row.length;
      integers[at + 2] = resultsOf(row.byteOffset);
      for (let k = 0; k < MOST_COLDNESSES; k++) {
        this.#floats[index * FLOATS + 1 + k] = coldnesses[k] ?? Number.NaN;
      }
    }
    Atomics.store(integers, COUNT, count);
    Atomics.add(integers, ROUND, 1);
    // From here on jobs can be taken.
    Atomics.store(integers, NEXT, 0);
    Atomics.notify(integers, ROUND);
    return true;
  }

  /** No further job of this round is taken. */
  close(): void {
    Atomics.store(this.#integers, NEXT, MOST_JOBS);
  }

  /** Waits for a round after `seen`; its number. */
  awaitRound(seen: number): number {
    Atomics.wait(this.#integers, ROUND, seen);
    return Atomics.load(this.#integers, ROUND);
  }

  /** Reduces one job after the other until none is left. */
  workOff(reduce: (index: number) => void): void {
    const integers = this.#integers;
    for (;;) {
      // Busy before the job is taken: else the next round could begin in between.
      Atomics.add(integers, BUSY, 1);
      const index = Atomics.add(integers, NEXT, 1);
      const round = Atomics.load(integers, ROUND);
      const taken = index < Atomics.load(integers, COUNT);
      if (taken) {
        reduce(index);
        Atomics.store(integers, HEADER + index * INTEGERS + 3, round);
      }
      Atomics.sub(integers, BUSY, 1);
      if (!taken) return;
    }
  }

  row(index: number): number {
    return this.#integers[HEADER + index * INTEGERS]!;
  }

  length(index: number): number {
    return this.#integers[HEADER + index * INTEGERS + 1]!;
  }

  results(index: number): number {
    return this.#integers[HEADER + index * INTEGERS + 2]!;
  }

  /** Whether there is such a job in this round and it has been done. */
  isDone(index: number): boolean {
    const integers = this.#integers;
    if (index < 0 || index >= Atomics.load(integers, COUNT)) return false;
    return Atomics.load(integers, HEADER + index * INTEGERS + 3) === Atomics.load(integers, ROUND);
  }

  /** NaN where fewer were given. */
  coldness(index: number, k: number): number {
    return this.#floats[index * FLOATS + 1 + k]!;
  }

  /** The largest logit, of which the sums are told; NaN where there are none. */
  highest(index: number): number {
    return this.#floats[index * FLOATS]!;
  }

  isSound(index: number): boolean {
    return this.#integers[HEADER + index * INTEGERS + 4] === 1;
  }

  /** What was found about a job that is being reduced. */
  record(index: number, sound: boolean, highest: number): void {
    this.#integers[HEADER + index * INTEGERS + 4] = sound ? 1 : 0;
    this.#floats[index * FLOATS] = highest;
  }
}
