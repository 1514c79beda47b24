import { parentPort, workerData } from 'node:worker_threads';
import { inspectModels } from './inspect-models.ts';
import type { ModelSet } from './models-file.ts';

/** Entry of the thread that inspects models while others are served. */

const { models, limits } = workerData as ModelSet;
parentPort?.postMessage(inspectModels(models, limits));
