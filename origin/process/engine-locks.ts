import { freeThreadLock, ownerOf, takeThreadLock, withThreadLock } from './thread-lock.ts';

/** What the engines of a process agree on: who runs on WebGPU, and who captures graphs on CUDA. */

/** When an engine may call a device that it shares with others of its process. */
export interface DeviceTurns {
  /** Calls the device. Blocks the thread as long as others need it for themselves. */
  call<T>(work: () => T): T;
  /** Works while no other engine calls the device. Absent = each call is such work. */
  alone?<T>(work: () => T): T;
}

/** Engines that are on CUDA at the same time. */
const MAX_ENGINES = 64;

/**
 * Layout in int32: a lock of runs, a lock of starts on CUDA, a lock of captures, then of each engine on CUDA
 * its thread, and 1 while it calls CUDA.
 */
const [RUNS, STARTS, CAPTURES, ENGINES] = [0, 1, 2, 3] as const;
const ENGINE_SIZE = 2;
const NONE = 0;

export const createEngineLocks = () => new SharedArrayBuffer(4 * (ENGINES + ENGINE_SIZE * MAX_ENGINES));

const cellAt = (memory: SharedArrayBuffer, at: number): Int32Array => new Int32Array(memory, 4 * at, 1);

/** Turns of one engine at a time, for WebGPU. */
export function singleTurns(memory: SharedArrayBuffer, threadId: number): DeviceTurns {
  return { call: (work) => withThreadLock(cellAt(memory, RUNS), threadId, work) };
}

/**
 * Starts an engine on CUDA, after all that are starting there now.
 * @param memory of `createEngineLocks`; absent = there is no other engine
 * @param start gets the engine's turns
 */
export async function startOnCuda<T>(
  memory: SharedArrayBuffer | undefined,
  threadId: number,
  start: (turns: DeviceTurns | undefined) => Promise<T>,
): Promise<T> {
  if (memory === undefined) return start(undefined);
  const lock = cellAt(memory, STARTS);
  takeThreadLock(lock, threadId);
  try {
    return await start(new CudaTurns(memory, threadId));
  } catch (error) {
    leaveCuda(memory, threadId);
    throw error;
  } finally {
    freeThreadLock(lock, threadId);
  }
}

/** Frees what a thread held when it ended. */
export function freeAfterThread(memory: SharedArrayBuffer | undefined, threadId: number): void {
  if (memory === undefined) return;
  leaveCuda(memory, threadId);
  for (const lock of [STARTS, CAPTURES, RUNS]) freeThreadLock(cellAt(memory, lock), threadId);
}

function leaveCuda(memory: SharedArrayBuffer, threadId: number): void {
  for (const { thread, calls } of enginesOf(memory)) {
    if (Atomics.compareExchange(thread, 0, ownerOf(threadId), NONE) !== ownerOf(threadId)) continue;
    Atomics.store(calls, 0, 0);
    Atomics.notify(calls, 0);
  }
}

const enginesOf = (memory: SharedArrayBuffer) =>
  Array.from({ length: MAX_ENGINES }, (_, place) => {
    const at = ENGINES + ENGINE_SIZE * place;
    return { thread: cellAt(memory, at), calls: cellAt(memory, at + 1) };
  });

/**
 * Turns on CUDA, where engines run side by side. But during a capture of graphs no other thread may call
 * CUDA, so all others wait before their next call.
 */
class CudaTurns implements DeviceTurns {
  readonly #threadId: number;
  readonly #captures: Int32Array;
  readonly #calls: Int32Array;
  readonly #others: readonly Int32Array[];
  #depth = 0;

  /** @throws Error if there is no place for another engine */
  constructor(memory: SharedArrayBuffer, threadId: number) {
    this.#threadId = threadId;
    this.#captures = cellAt(memory, CAPTURES);
    const engines = enginesOf(memory);
    const engine = engines.find(
      ({ thread }) => Atomics.compareExchange(thread, 0, NONE, ownerOf(threadId)) === NONE,
    );
    if (engine === undefined) throw new Error(`there are ${MAX_ENGINES} engines on CUDA`);
    this.#calls = engine.calls;
    this.#others = engines.filter((each) => each !== engine).map(({ calls }) => calls);
  }

  call<T>(work: () => T): T {
    if (this.#depth === 0) this.#enter();
    this.#depth++;
    try {
      return work();
    } finally {
      this.#depth--;
      if (this.#depth === 0) this.#leave();
    }
  }

  alone<T>(work: () => T): T {
    return withThreadLock(this.#captures, this.#threadId, () => {
      for (const calls of this.#others) while (Atomics.load(calls, 0) !== 0) Atomics.wait(calls, 0, 1);
      return work();
    });
  }

  #enter(): void {
    for (;;) {
      Atomics.store(this.#calls, 0, 1);
      const capturer = Atomics.load(this.#captures, 0);
      if (capturer === NONE || capturer === ownerOf(this.#threadId)) return;
      this.#leave();
      Atomics.wait(this.#captures, 0, capturer);
    }
  }

  #leave(): void {
    Atomics.store(this.#calls, 0, 0);
    Atomics.notify(this.#calls, 0);
  }
}
