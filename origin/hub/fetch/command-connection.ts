import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProgressDisplay } from '../../terminal/progress.ts';
import type { HttpOptions } from './http.ts';
import type { RetryOptions } from './retries.ts';

const MAX_ATTEMPTS = 6;
const STALL_MS = 30_000;

/** How the commands download: with retries that they report. */
export function commandConnection(
  progress: ProgressDisplay,
): HttpOptions & { readonly retries: RetryOptions } {
  const onRetry = (reason: string, delayMs: number) =>
    progress.note(`${reason}; next attempt in ${(delayMs / 1000).toFixed(1)} s`);
  return {
    fetch,
    stallMs: STALL_MS,
    retries: { maxAttempts: MAX_ATTEMPTS, sleep, random: Math.random, onRetry },
  };
}

/**
 * Runs `work` with the proxy of HTTPS_PROXY, HTTP_PROXY and NO_PROXY, which needs Node 24.14. Requests that
 * follow, such as those to the origin, are sent directly.
 */
export async function throughProxy<T>(work: () => Promise<T>): Promise<T> {
  const restore = http.setGlobalProxyFromEnv?.();
  try {
    return await work();
  } finally {
    restore?.();
  }
}
