import { Worker } from 'node:worker_threads';
import { ordinaryBuffer } from '../model/ort/ort-ordinary-buffer.ts';
import type { Drawers, DrawShare } from '../sampling/team/draw-team.ts';
import { MOST_THREADS } from '../sampling/team/job-list.ts';

/**
 * Threads to draw tokens on, the calling one among them, of so many cores; null where there is no other. More than there
 * may be would hardly help: each takes some 30 MB, and with so many a step's rows are drawn in one or two milliseconds.
 */
export function drawersBeside(cores: number): Drawers | null {
  const threads = Math.min(cores, MOST_THREADS);
  return threads > 1 ? { threads, start, ordinary: ordinaryBuffer } : null;
}

/** Without it there is one less to help: where there is no room for a thread, too. */
function start(share: DrawShare, ended: () => void): void {
  try {
    const thread = new Worker(new URL('./engine-thread-drawer.ts', import.meta.url), { workerData: share });
    thread.unref();
    thread.on('error', () => undefined);
    thread.on('exit', ended);
  } catch {
    ended();
  }
}
