/** A lock between threads: an int32 with the holder's number plus one. */

const FREE = 0;
/** The number that stands for a thread in shared memory, where 0 is none. */
export const ownerOf = (threadId: number): number => threadId + 1;

/** Runs `work` while this thread, `threadId`, holds the lock. Blocks the thread until it is free. */
export function withThreadLock<T>(cell: Int32Array, threadId: number, work: () => T): T {
  takeThreadLock(cell, threadId);
  try {
    return work();
  } finally {
    freeThreadLock(cell, threadId);
  }
}

/** Blocks the thread until it holds the lock. */
export function takeThreadLock(cell: Int32Array, threadId: number): void {
  for (;;) {
    const holder = Atomics.compareExchange(cell, 0, FREE, ownerOf(threadId));
    if (holder === FREE) return;
    Atomics.wait(cell, 0, holder);
  }
}

/** Frees the lock if a thread holds it, or held it when it was terminated. */
export function freeThreadLock(cell: Int32Array, threadId: number): void {
  Atomics.compareExchange(cell, 0, ownerOf(threadId), FREE);
  Atomics.notify(cell, 0);
}
