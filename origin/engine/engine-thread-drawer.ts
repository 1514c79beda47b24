import { workerData } from 'node:worker_threads';
import { ordinaryBuffer } from '../model/ort/ort-ordinary-buffer.ts';
import { type DrawShare, drawForever } from '../sampling/team/draw-team.ts';

/** Entry of a thread that draws tokens beside the engine's, with which it ends. */

drawForever(workerData as DrawShare, { ordinary: ordinaryBuffer });
