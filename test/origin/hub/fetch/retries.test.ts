import { expect, test } from 'vitest';
import { HubError, TransientHubError } from '../../../../origin/hub/fetch/hub-error.ts';
import { withRetries } from '../../../../origin/hub/fetch/retries.ts';

/** Retry options that record the delays and the announced delays, in milliseconds. */
function recording(maxAttempts: number, random = 0.5) {
  const delays: number[] = [];
  const announced: number[] = [];
  const sleep = async (ms: number) => void delays.push(ms);
  const onRetry = (_: string, delayMs: number) => void announced.push(delayMs);
  return { delays, announced, options: { maxAttempts, sleep, random: () => random, onRetry } };
}

/** An attempt that fails `count` times. */
function failing(count: number, error: Error, makesProgress = false) {
  let failures = 0;
  return async (onProgress: () => void) => {
    if (makesProgress) onProgress();
    failures += 1;
    if (failures <= count) throw error;
    return 'done';
  };
}
const lost = new TransientHubError('lost');

test('doubles the delay up to 20 s with up to 50 % jitter', async () => {
  const low = recording(9, 0);
  await withRetries(low.options, failing(8, lost));
  expect(low.delays).toEqual([250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  const high = recording(9, 0.999_999);
  await withRetries(high.options, failing(8, lost));
  expect(high.delays).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000]);
});

test('fails with the last reason after the maximum number of attempts', async () => {
  const { options, delays } = recording(3);
  await expect(withRetries(options, failing(3, lost))).rejects.toThrow(
    new HubError('failed after 3 attempts: lost'),
  );
  expect(delays).toHaveLength(2);
});

test('counts attempts from 0 again after progress', async () => {
  const { options } = recording(2);
  await expect(withRetries(options, failing(20, lost, true))).resolves.toBe('done');
});

test('waits and announces the server’s Retry-After, at most 5 minutes', async () => {
  const { options, delays, announced } = recording(3);
  await withRetries(options, failing(1, new TransientHubError('busy', 3000)));
  await withRetries(options, failing(1, new TransientHubError('busy', 86_400_000)));
  expect(delays).toEqual([3000, 300_000]);
  expect(announced).toEqual(delays);
});

test('does not retry other errors', async () => {
  const { options, delays } = recording(3);
  await expect(withRetries(options, failing(1, new HubError('no')))).rejects.toThrow('no');
  expect(delays).toEqual([]);
});
