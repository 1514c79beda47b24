import { workerData } from 'node:worker_threads';
import { reduceForever, type SharedWork } from '../sampling/simd/shared-work.ts';

/** Entry of a thread that reduces rows of logits beside the engine's, with which it ends. */

reduceForever(workerData as SharedWork);
