import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;

/** Returns the HTTP status of an address; null if there is no answer. */
async function statusOf(url: string): Promise<number | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) });
    await response.body?.cancel();
    return response.status;
  } catch {
    return null;
  }
}

/**
 * Waits until a health check passes.
 * @throws Error after `withinMs`, on status 500 (waiting would not help), or when `over` is aborted
 */
export async function untilReady(url: string, withinMs: number, over: AbortSignal): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const status = await statusOf(url);
    if (status === 200) return;
    over.throwIfAborted();
    if (status === 500) throw new Error('answered its health check with 500');
    if (performance.now() > deadline) throw new Error(`was not ready within ${withinMs / 1000} s`);
    await sleep(POLL_MS);
  }
}
