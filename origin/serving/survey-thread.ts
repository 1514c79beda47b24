import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../shared/message-of.ts';
import type { ModelSettings } from '../config/model-settings.ts';
import { type SurveyedModel, surveyModel } from './survey.ts';

/** Entry of a thread that surveys models while others are being served: large graphs and vocabularies take time. */

export type SurveyResult = { readonly models: readonly SurveyedModel[] } | { readonly fault: string };

const result = (): SurveyResult => {
  try {
    return { models: (workerData as readonly ModelSettings[]).map(surveyModel) };
  } catch (error) {
    return { fault: messageOf(error) };
  }
};

parentPort?.postMessage(result());
