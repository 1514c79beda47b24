import { Worker, workerData } from 'node:worker_threads';
import { ordinaryBuffer } from '../model/ort/ort-ordinary-buffer.ts';
import { MOST_THREADS } from '../sampling/pool/job-list.ts';
import { type Drawers, type DrawShare, drawForever } from '../sampling/pool/sampler-pool.ts';

/** Starts the threads of the sampler pool, and is their entry. */

interface SamplerThreadData {
  readonly samplerShare: DrawShare;
}

/**
 * Returns the threads that sample tokens on this many cores, including the calling one; null if there is only one. A
 * thread takes about 30 MB, and MOST_THREADS draw a step's rows in one or two milliseconds.
 */
export function samplerThreads(cores: number): Drawers | null {
  const threads = Math.min(cores, MOST_THREADS);
  return threads > 1 ? { threads, start, ordinary: ordinaryBuffer } : null;
}

/** If a thread cannot be started, for example for lack of memory, the others do its work. */
function start(samplerShare: DrawShare, ended: () => void): void {
  try {
    const data: SamplerThreadData = { samplerShare };
    const thread = new Worker(new URL(import.meta.url), { workerData: data });
    thread.unref();
    thread.on('error', () => undefined);
    thread.on('exit', ended);
  } catch {
    ended();
  }
}

const isSamplerThread = (data: unknown): data is SamplerThreadData =>
  typeof data === 'object' && data !== null && 'samplerShare' in data;

if (isSamplerThread(workerData)) drawForever(workerData.samplerShare, { ordinary: ordinaryBuffer });
