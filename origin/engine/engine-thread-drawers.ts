import { Worker } from 'node:worker_threads';
import { ordinaryBuffer } from '../model/ort-ordinary-buffer.ts';
import type { Drawers, DrawShare } from '../sampling/team/draw-team.ts';

/** Threads to draw tokens on, the calling one among them; null where there is no other. */
export function drawersBeside(threads: number): Drawers | null {
  return threads > 1 ? { threads, start, ordinary: ordinaryBuffer } : null;
}

function start(share: DrawShare): void {
  const thread = new Worker(new URL('./engine-thread-drawer.ts', import.meta.url), { workerData: share });
  thread.unref();
  // Without it there is one less to help.
  thread.on('error', () => undefined);
}
