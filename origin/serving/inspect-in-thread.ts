import { Worker } from 'node:worker_threads';
import type { ModelSettings } from '../config/model-settings.ts';
import type { Inspection } from './inspect-model.ts';

/** Runs `inspectModels` in a thread, because large graphs and vocabularies take time. @throws Error if the thread fails */
export async function inspectInThread(models: readonly ModelSettings[]): Promise<Inspection> {
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), { workerData: models });
  return await new Promise<Inspection>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the models could not be read')));
  });
}
