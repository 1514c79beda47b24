/** A row to be reduced, all addresses in bytes of the rows' memory. */
export interface ReductionJob {
  readonly row: number;
  readonly length: number;
  /** Where what is found goes: each block's maximum, then its sum at one coldness after the other. */
  readonly results: number;
  readonly coldnesses: readonly number[];
}

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

  /** @param memory another thread's list */
  constructor(memory = new SharedArrayBuffer(BYTES)) {
    this.memory = memory;
    this.#floats = new Float64Array(memory, 0, MOST_JOBS * FLOATS);
    this.#integers = new Int32Array(memory, this.#floats.byteLength);
  }

  /** Begins a round, unless somebody is still busy with the last one. The last one must have been closed. */
  open(jobs: readonly ReductionJob[]): boolean {
    const integers = this.#integers;
    if (Atomics.load(integers, BUSY) > 0) return false;
    for (const [index, { row, length, results, coldnesses }] of jobs.entries()) {
      const at = HEADER + index * INTEGERS;
      integers[at] = row;
      integers[at + 1] = length;
      integers[at + 2] = results;
      for (let k = 0; k < MOST_COLDNESSES; k++) {
        this.#floats[index * FLOATS + 1 + k] = coldnesses[k] ?? Number.NaN;
      }
    }
    Atomics.store(integers, COUNT, jobs.length);
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

  /** Whether this round's job has been done. */
  isDone(index: number): boolean {
    const integers = this.#integers;
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
