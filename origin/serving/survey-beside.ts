import { Worker } from 'node:worker_threads';
import type { ModelSettings } from '../config/model-settings.ts';
import type { SurveyedModel } from './survey.ts';
import type { SurveyResult } from './survey-thread.ts';

/** `surveyModel` for each, in a thread of its own. @throws Error as it does */
export async function surveyBeside(models: readonly ModelSettings[]): Promise<readonly SurveyedModel[]> {
  const thread = new Worker(new URL('./survey-thread.ts', import.meta.url), { workerData: models });
  const result = await new Promise<SurveyResult>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the models could not be read')));
  });
  if ('fault' in result) throw new Error(result.fault);
  return result.models;
}
