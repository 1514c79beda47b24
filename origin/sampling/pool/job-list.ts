/** A list holds at most this many jobs: one for each slot that an engine may have. */
export const MAX_JOBS = 1024;

/** At most this many threads work on one list. */
export const MAX_THREADS = 8;

/** Layout of the shared integers: three numbers, then a flag per thread, then each job's last round. */
const [ROUND, NEXT, COUNT, BUSY] = [0, 1, 2, 3] as const;
const DONE = BUSY + MAX_THREADS;

/**
 * The jobs of one decode step, by index, in shared memory. Several threads work on the list; each takes the
 * next job. No thread waits for another: the caller does a job itself if it is not done yet. A round can
 * begin only when no thread is busy with the previous one.
 */
export class JobList {
  readonly memory: SharedArrayBuffer;
  readonly #integers: Int32Array;
  readonly #thread: number;

  /**
   * @param memory another thread's list; a new, closed one by default
   * @param thread index of the calling thread among those that work on the list, 0 … MAX_THREADS − 1
   */
  constructor(memory?: SharedArrayBuffer, thread = 0) {
    this.#thread = thread;
    this.memory = memory ?? new SharedArrayBuffer(4 * (DONE + MAX_JOBS));
    this.#integers = new Int32Array(this.memory);
    if (memory === undefined) this.close();
  }

  /** Whether a thread is still working on a job of the last round. */
  get busy(): boolean {
    for (let thread = 0; thread < MAX_THREADS; thread++) {
      if (Atomics.load(this.#integers, BUSY + thread) !== 0) return true;
    }
    return false;
  }

  /** Removes a thread that has ended, perhaps during a job; that job is never done. */
  removeThread(thread: number): void {
    Atomics.store(this.#integers, BUSY + thread, 0);
  }

  /**
   * Begins a round of `count` jobs. The last round must be closed, and no thread busy.
   * @param wakes most threads that are woken
   */
  open(count: number, wakes = MAX_THREADS): void {
    const integers = this.#integers;
    Atomics.store(integers, COUNT, count);
    Atomics.add(integers, ROUND, 1);
    // Jobs can be taken from here on.
    Atomics.store(integers, NEXT, 0);
    Atomics.notify(integers, ROUND, wakes);
  }

  /** Ends the round: no further job is taken, and none counts as done. */
  close(): void {
    Atomics.store(this.#integers, COUNT, 0);
    Atomics.store(this.#integers, NEXT, MAX_JOBS);
  }

  /** Blocks until a round after `seen` begins; returns its number. */
  awaitRound(seen: number): number {
    Atomics.wait(this.#integers, ROUND, seen);
    return Atomics.load(this.#integers, ROUND);
  }

  /** Takes and does jobs until none is left. Other threads may still be working on theirs. */
  workOff(work: (index: number) => void): void {
    const integers = this.#integers;
    const cell = BUSY + this.#thread;
    for (;;) {
      // Set before a job is taken: otherwise the next round could begin in between.
      Atomics.store(integers, cell, 1);
      const index = Atomics.add(integers, NEXT, 1);
      const round = Atomics.load(integers, ROUND);
      const taken = index < Atomics.load(integers, COUNT);
      if (taken) {
        work(index);
        Atomics.store(integers, DONE + index, round);
      }
      Atomics.store(integers, cell, 0);
      if (!taken) return;
    }
  }

  /** Whether this round has such a job and it is done. */
  isDone(index: number): boolean {
    const integers = this.#integers;
    if (index < 0 || index >= Atomics.load(integers, COUNT)) return false;
    return Atomics.load(integers, DONE + index) === Atomics.load(integers, ROUND);
  }
}
