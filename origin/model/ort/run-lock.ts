import type { OrtApi } from './ort-capi.ts';

/**
 * A lock that all threads of the process share. ONNX Runtime's WebGPU provider has one command queue per process and crashes
 * if two threads use it at the same time (microsoft/onnxruntime#32561).
 */

/** A lock is an int32: the number of the thread that holds it, plus one. engine-client.ts frees it after a dead thread. */
const FREE = 0;

/** Returns functions that hold the lock while they run. They must be called from the thread `threadId`. */
export function lockedApi(api: OrtApi, memory: SharedArrayBuffer, threadId: number): OrtApi {
  const cell = new Int32Array(memory);
  const owner = threadId + 1;
  const locked = Object.entries(api).map(([name, member]) => {
    if (typeof member !== 'function' || name === 'addressOf') return [name, member];
    const call = member as (...args: unknown[]) => unknown;
    const held = (...args: unknown[]) => {
      for (let holder = FREE; ; ) {
        holder = Atomics.compareExchange(cell, 0, FREE, owner);
        if (holder === FREE) break;
        Atomics.wait(cell, 0, holder);
      }
      try {
        return call(...args);
      } finally {
        release(cell);
      }
    };
    return [name, held];
  });
  return Object.fromEntries(locked);
}

function release(cell: Int32Array): void {
  Atomics.store(cell, 0, FREE);
  Atomics.notify(cell, 0, 1);
}
