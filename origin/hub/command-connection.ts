import { setTimeout as sleep } from 'node:timers/promises';
import type { ProgressDisplay } from '../terminal/progress.ts';
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
