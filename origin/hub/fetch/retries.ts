import { backOff, partOf } from '@continuo/shared/retry.ts';
import { HubUnreachable, TransientHubError } from './hub-error.ts';

export interface RetryOptions {
  /** Consecutive attempts without progress after which the operation fails. */
  readonly maxAttempts: number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Called before each delay. */
  readonly onRetry: (reason: string, delayMs: number) => void;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 20_000;
/** Upper limit of Retry-After; the hub counts its rate limits over 5 minutes. */
const MAX_RETRY_AFTER_MS = 300_000;

/**
 * Retries `attempt` after a TransientHubError. A call of `onProgress` resets the count: a large file over a
 * bad connection can take many attempts.
 * @throws HubUnreachable after the last attempt; other errors of `attempt` unchanged
 */
export async function withRetries<T>(
  { maxAttempts, sleep, random, onRetry }: RetryOptions,
  attempt: (onProgress: () => void) => Promise<T>,
): Promise<T> {
  let failures = 0;
  const onProgress = () => {
    failures = 0;
  };
  for (;;) {
    try {
      return await attempt(onProgress);
    } catch (error) {
      if (!(error instanceof TransientHubError)) throw error;
      failures += 1;
      if (failures >= maxAttempts) {
        throw new HubUnreachable(`failed after ${failures} attempts: ${error.message}`);
      }
      const usual = partOf(backOff(failures, FIRST_DELAY_MS, MAX_DELAY_MS), random());
      const delayMs = Math.min(error.retryAfterMs ?? Math.round(usual), MAX_RETRY_AFTER_MS);
      onRetry(error.message, delayMs);
      await sleep(delayMs);
    }
  }
}
