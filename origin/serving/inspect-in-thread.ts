import { Worker } from 'node:worker_threads';
import type { Inspection } from './inspect-model.ts';
import type { ModelSet } from './models-file.ts';

/** Runs `inspectModels` in a thread, because large graphs and vocabularies take time. @throws Error if the thread fails */
export async function inspectInThread(configured: ModelSet): Promise<Inspection> {
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), { workerData: configured });
  return await new Promise<Inspection>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the models could not be read')));
  });
}
