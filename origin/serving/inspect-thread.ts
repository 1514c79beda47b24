import { parentPort, workerData } from 'node:worker_threads';
import type { ModelSettings } from '../config/model-settings.ts';
import { inspectModels } from './inspect-model.ts';

/** Entry of the thread that inspects models while others are served. */

parentPort?.postMessage(inspectModels(workerData as readonly ModelSettings[]));
