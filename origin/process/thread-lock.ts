/** A lock between threads: an int32 with the number of the thread that holds it, plus one. */

const FREE = 0;
const ownerOf = (threadId: number): number => threadId + 1;

/** Runs `call` while this thread, `threadId`, holds the lock. Blocks the thread until it is free. */
export function withThreadLock<T>(cell: Int32Array, threadId: number, call: () => T): T {
  for (let holder = FREE; ; ) {
    holder = Atomics.compareExchange(cell, 0, FREE, ownerOf(threadId));
    if (holder === FREE) break;
    Atomics.wait(cell, 0, holder);
  }
  try {
    return call();
  } finally {
    Atomics.store(cell, 0, FREE);
    Atomics.notify(cell, 0, 1);
  }
}

/** Frees the lock if a thread was terminated while it held it. */
export function freeAfterThread(cell: Int32Array, threadId: number): void {
  Atomics.compareExchange(cell, 0, ownerOf(threadId), FREE);
  Atomics.notify(cell, 0);
}
