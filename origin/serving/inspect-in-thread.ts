import { Worker } from 'node:worker_threads';
import type { ModelSettings } from '../config/model-settings.ts';
import type { InspectedModel } from './inspect-model.ts';
import type { InspectResult } from './inspect-thread.ts';

/** Runs `inspectModel` for each model in a thread, because large graphs and vocabularies take time. @throws Error as it does */
export async function inspectInThread(models: readonly ModelSettings[]): Promise<readonly InspectedModel[]> {
  const thread = new Worker(new URL('./inspect-thread.ts', import.meta.url), { workerData: models });
  const result = await new Promise<InspectResult>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the models could not be read')));
  });
  if ('fault' in result) throw new Error(result.fault);
  return result.models;
}
