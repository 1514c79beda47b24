import { Worker, workerData } from 'node:worker_threads';
import { ordinaryBuffer } from '../../model/ort/ort-library.ts';
import { SupervisedChild, threadLife } from '../../process/supervised-child.ts';
import { MAX_THREADS } from '../../sampling/pool/job-list.ts';
import type { SamplerThreads } from '../../sampling/pool/sampler-pool.ts';
import { runSamplerWorker, type WorkerShare } from '../../sampling/pool/sampler-worker.ts';

/** Starts the threads of the sampler pool, and is their entry. */

interface SamplerThreadData {
  readonly samplerShare: WorkerShare;
}

/**
 * Returns the threads that sample tokens on this many cores, including the calling one; null if there is only
 * one. A thread takes about 30 MB, and MAX_THREADS draw a step's rows in one or two milliseconds.
 */
export function samplerThreads(cores: number): SamplerThreads | null {
  const threads = Math.min(cores, MAX_THREADS);
  return threads > 1 ? { threads, start, viewMemory: ordinaryBuffer } : null;
}

/** If a thread has ended or cannot be started, for example for lack of memory, the others do its work. */
function start(samplerShare: WorkerShare, ended: () => void): void {
  const data: SamplerThreadData = { samplerShare };
  new SupervisedChild({
    spawn: () => threadLife(new Worker(new URL(import.meta.url), { workerData: data })),
    onDeath: () => {
      ended();
      return null;
    },
    background: true,
  }).start();
}

const isSamplerThread = (data: unknown): data is SamplerThreadData =>
  typeof data === 'object' && data !== null && 'samplerShare' in data;

if (isSamplerThread(workerData)) runSamplerWorker(workerData.samplerShare, ordinaryBuffer);
