/** More jobs than this are left to whoever asks for them. */
export const MOST_JOBS = 256;

/** Threads that may work on one list. */
export const MOST_THREADS = 8;

const [ROUND, NEXT, COUNT] = [0, 1, 2] as const;
/** Where it begins which threads are at work, */
const BUSY = 3;
/** and where the rounds in which jobs were done last. */
const DONE = BUSY + MOST_THREADS;

/**
 * The jobs of one step, by their indices, as a list in shared memory that several threads work off, each taking the next
 * one. Nobody waits for anybody: who needs a job that is not done yet does it himself, and a round begins only when nobody
 * is at work on the one before.
 */
export class JobList {
  readonly memory: SharedArrayBuffer;
  readonly #integers: Int32Array;
  readonly #thread: number;

  /**
   * @param memory another thread's list; a closed one of its own unless given
   * @param thread the calling one among those that work on the list, 0 … MOST_THREADS − 1
   */
  constructor(memory?: SharedArrayBuffer, thread = 0) {
    this.#thread = thread;
    this.memory = memory ?? new SharedArrayBuffer(4 * (DONE + MOST_JOBS));
    this.#integers = new Int32Array(this.memory);
    if (memory === undefined) this.close();
  }

  /** Whether somebody is still at work on a job of the last round. */
  get busy(): boolean {
    for (let thread = 0; thread < MOST_THREADS; thread++) {
      if (Atomics.load(this.#integers, BUSY + thread) !== 0) return true;
    }
    return false;
  }

  /** A thread is no more, maybe since the middle of a job, which is never done then. */
  forget(thread: number): void {
    Atomics.store(this.#integers, BUSY + thread, 0);
  }

  /** Begins a round of so many jobs. The last one must have been closed, and nobody be busy with it. */
  open(count: number): void {
    const integers = this.#integers;
    Atomics.store(integers, COUNT, count);
    Atomics.add(integers, ROUND, 1);
    // From here on jobs can be taken.
    Atomics.store(integers, NEXT, 0);
    Atomics.notify(integers, ROUND);
  }

  /** No further job of this round is taken, and none counts as done. */
  close(): void {
    Atomics.store(this.#integers, COUNT, 0);
    Atomics.store(this.#integers, NEXT, MOST_JOBS);
  }

  /** Waits for a round after `seen`; its number. */
  awaitRound(seen: number): number {
    Atomics.wait(this.#integers, ROUND, seen);
    return Atomics.load(this.#integers, ROUND);
  }

  /** Does one job after the other until none is left to be taken; others may still be at work on theirs. */
  workOff(work: (index: number) => void): void {
    const integers = this.#integers;
    const own = BUSY + this.#thread;
    for (;;) {
      // Busy before the job is taken: else the next round could begin in between.
      Atomics.store(integers, own, 1);
      const index = Atomics.add(integers, NEXT, 1);
      const round = Atomics.load(integers, ROUND);
      const taken = index < Atomics.load(integers, COUNT);
      if (taken) {
        work(index);
        Atomics.store(integers, DONE + index, round);
      }
      Atomics.store(integers, own, 0);
      if (!taken) return;
    }
  }

  /** Whether there is such a job in this round and it has been done. */
  isDone(index: number): boolean {
    const integers = this.#integers;
    if (index < 0 || index >= Atomics.load(integers, COUNT)) return false;
    return Atomics.load(integers, DONE + index) === Atomics.load(integers, ROUND);
  }
}
