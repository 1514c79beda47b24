import { Worker } from 'node:worker_threads';
import { ordinaryBuffer } from '../model/ort-ordinary-buffer.ts';
import type { Helpers, SharedWork } from '../sampling/simd/shared-work.ts';

/** So many threads beside the calling one, for a SimdKernel; null = none. */
export function reducersBeside(count: number): Helpers | null {
  return count > 0 ? { count, start, ordinary: ordinaryBuffer } : null;
}

function start(work: SharedWork): void {
  const thread = new Worker(new URL('./reduction-thread.ts', import.meta.url), { workerData: work });
  thread.unref();
  // Without it there is one less to help.
  thread.on('error', () => undefined);
}
