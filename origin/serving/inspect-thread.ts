import { parentPort, workerData } from 'node:worker_threads';
import { errorMessage } from '../../shared/error-details.ts';
import type { ModelSettings } from '../config/model-settings.ts';
import { type InspectedModel, inspectModel } from './inspect-model.ts';

/** Entry of the thread that inspects models while others are served. */

export type InspectResult = { readonly models: readonly InspectedModel[] } | { readonly fault: string };

const result = (): InspectResult => {
  try {
    return { models: (workerData as readonly ModelSettings[]).map(inspectModel) };
  } catch (error) {
    return { fault: errorMessage(error) };
  }
};

parentPort?.postMessage(result());
