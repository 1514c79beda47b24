import { freeThreadLock, ownerOf, takeThreadLock } from './thread-lock.ts';

/** What the engines of a process agree on: who runs on WebGPU, who is on CUDA, and who captures graphs. */

/** Engines that are on CUDA at the same time. */
const MAX_ENGINES = 64;

/** Layout in int32: a lock of runs, a lock of starts on CUDA, then the threads of the engines on CUDA. */
const [RUNS, STARTS, ENGINES] = [0, 1, 2] as const;
const NONE = 0;

export const createEngineLocks = () => new SharedArrayBuffer(4 * (ENGINES + MAX_ENGINES));

/** The lock of runs, for `withThreadLock`. */
export const runLockOf = (memory: SharedArrayBuffer): Int32Array => new Int32Array(memory, 4 * RUNS, 1);

const startLockOf = (memory: SharedArrayBuffer): Int32Array => new Int32Array(memory, 4 * STARTS, 1);

/**
 * Starts an engine on CUDA. During a capture of graphs no other thread may call CUDA. So an engine captures
 * only if no other is on CUDA, and engines that start meanwhile wait until it has started or failed.
 * @param memory of `createEngineLocks`; absent = there is no other engine
 * @param start gets whether the engine may capture
 */
export async function startOnCuda<T>(
  memory: SharedArrayBuffer | undefined,
  threadId: number,
  start: (mayCapture: boolean) => Promise<T>,
): Promise<T> {
  if (memory === undefined) return start(true);
  const engines = new Int32Array(memory, 4 * ENGINES);
  const lock = startLockOf(memory);
  takeThreadLock(lock, threadId);
  try {
    const isAlone = engines.every((engine) => engine === NONE);
    const place = engines.indexOf(NONE);
    if (place < 0) throw new Error(`there are ${MAX_ENGINES} engines on CUDA`);
    Atomics.store(engines, place, ownerOf(threadId));
    if (!isAlone) freeThreadLock(lock, threadId);
    return await start(isAlone);
  } catch (error) {
    leaveCuda(engines, threadId);
    throw error;
  } finally {
    freeThreadLock(lock, threadId);
  }
}

/** Frees what a thread held when it ended. Then the next engine on CUDA may capture. */
export function freeAfterThread(memory: SharedArrayBuffer | undefined, threadId: number): void {
  if (memory === undefined) return;
  leaveCuda(new Int32Array(memory, 4 * ENGINES), threadId);
  freeThreadLock(startLockOf(memory), threadId);
  freeThreadLock(runLockOf(memory), threadId);
}

function leaveCuda(engines: Int32Array, threadId: number): void {
  const place = engines.indexOf(ownerOf(threadId));
  if (place >= 0) Atomics.store(engines, place, NONE);
}
