/** A lock between threads: an int32 with the holder's number plus one. Also who may capture graphs. */

const FREE = 0;
const ownerOf = (threadId: number): number => threadId + 1;

/** Runs `call` while this thread, `threadId`, holds the lock. Blocks the thread until it is free. */
export function withThreadLock<T>(cell: Int32Array, threadId: number, work: () => T): T {
  for (let holder = FREE; ; ) {
    holder = Atomics.compareExchange(cell, 0, FREE, ownerOf(threadId));
    if (holder === FREE) break;
    Atomics.wait(cell, 0, holder);
  }
  try {
    return work();
  } finally {
    Atomics.store(cell, 0, FREE);
    Atomics.notify(cell, 0, 1);
  }
}

/** Frees the lock, if there is one, of a thread that was terminated while it held it. */
export function freeAfterThread(lock: SharedArrayBuffer | undefined, threadId: number): void {
  if (lock === undefined) return;
  const cell = new Int32Array(lock);
  Atomics.compareExchange(cell, 0, ownerOf(threadId), FREE);
  Atomics.notify(cell, 0);
}

/** Memory of a lock and, after it, the state of the claim. */
export const createRunLock = () => new SharedArrayBuffer(8);

const CLAIM = 1;
const UNCLAIMED = 0;
const CAPTURING = 1;
const CAPTURED = 2;
/** An engine that ended during its capture lets the others go on after this time. */
const LONGEST_CAPTURE_MS = 120_000;

/**
 * Claims CUDA graphs for the process's first engine on CUDA. During a capture no other thread may call CUDA,
 * so engines that start later wait until it has ended. They never capture, because the first one runs by
 * then.
 * @param memory of `createRunLock`; absent = there is no other engine
 * @returns whether this engine captures, and what to call when it has started or failed
 */
export function claimGraphs(memory: SharedArrayBuffer | undefined): { captures: boolean; end(): void } {
  if (memory === undefined) return { captures: true, end: () => {} };
  const cells = new Int32Array(memory);
  const state = Atomics.compareExchange(cells, CLAIM, UNCLAIMED, CAPTURING);
  if (state === CAPTURING) Atomics.wait(cells, CLAIM, CAPTURING, LONGEST_CAPTURE_MS);
  if (state !== UNCLAIMED) return { captures: false, end: () => {} };
  return {
    captures: true,
    end: () => {
      Atomics.store(cells, CLAIM, CAPTURED);
      Atomics.notify(cells, CLAIM);
    },
  };
}
