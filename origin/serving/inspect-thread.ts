import { parentPort, workerData } from 'node:worker_threads';
import { inspectModels, type ServedSet } from './inspect-models.ts';
import type { ModelSet } from './models-file.ts';

/** Entry of the thread that inspects models while others are served. */

export interface InspectThreadData extends ModelSet {
  readonly served: ServedSet;
}

const { models, limits, served } = workerData as InspectThreadData;
parentPort?.postMessage(inspectModels(models, limits, served));
