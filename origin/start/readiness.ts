import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 50;

/** The status that the address answers with; null for none. */
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
 * Waits for a health check that passes.
 * @throws Error when none does in time, when the answer is 500, which waiting does not change, or when `over` says that
 *   nobody waits any more
 */
export async function untilReady(url: string, withinMs: number, over: AbortSignal): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const status = await statusOf(url);
    if (status === 200) return;
    over.throwIfAborted();
    if (status === 500) throw new Error('cannot serve');
    if (performance.now() > deadline) throw new Error(`was not ready within ${withinMs / 1000} s`);
    await sleep(POLL_MS);
  }
}
