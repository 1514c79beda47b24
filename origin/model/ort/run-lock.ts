import { runLockOf } from '../../process/engine-locks.ts';
import { withThreadLock } from '../../process/thread-lock.ts';
import type { OrtApi } from './ort-capi.ts';

/**
 * Returns functions that hold a lock while they run, which all threads of the process share. ONNX Runtime's
 * WebGPU provider has one command queue per process and crashes if two threads use it at the same time
 * (microsoft/onnxruntime#32561).
 * @param memory of `createEngineLocks`
 * @param threadId of the thread that calls them
 */
export function lockedApi(api: OrtApi, memory: SharedArrayBuffer, threadId: number): OrtApi {
  const cell = runLockOf(memory);
  const locked = Object.entries(api).map(([name, member]) => {
    if (typeof member !== 'function' || name === 'addressOf') return [name, member];
    const call = member as (...args: unknown[]) => unknown;
    return [name, (...args: unknown[]) => withThreadLock(cell, threadId, () => call(...args))];
  });
  return Object.fromEntries(locked);
}
