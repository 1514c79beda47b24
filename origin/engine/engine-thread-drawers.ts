import { Worker } from 'node:worker_threads';
import { ordinaryBuffer } from '../model/ort-ordinary-buffer.ts';
import type { Drawers, DrawShare } from '../sampling/team/draw-team.ts';

/** More hardly help: each takes some 30 MB, and with so many a step's rows are drawn in one or two milliseconds. */
const MOST_THREADS = 8;

/** Threads to draw tokens on, the calling one among them, of so many cores; null where there is no other. */
export function drawersBeside(cores: number): Drawers | null {
  const threads = Math.min(cores, MOST_THREADS);
  return threads > 1 ? { threads, start, ordinary: ordinaryBuffer } : null;
}

function start(share: DrawShare): void {
  const thread = new Worker(new URL('./engine-thread-drawer.ts', import.meta.url), { workerData: share });
  thread.unref();
  // Without it there is one less to help.
  thread.on('error', () => undefined);
}
