import { expect, test } from 'vitest';
import { retry } from '../../shared/retry.ts';

/** Returns a call that fails this number of times, then succeeds, and counts its attempts. */
function failing(error: Error, times: number) {
  const call = async () => {
    call.made += 1;
    if (call.made <= times) throw error;
    return 'answer';
  };
  call.made = 0;
  return call;
}

/** Records the pauses. */
function backoff(random: number) {
  const pauses: number[] = [];
  return { pauses, random: () => random, pause: async (ms: number) => void pauses.push(ms) };
}

test('makes at most three attempts', async () => {
  const restarted = Object.assign(new Error('restarted'), { retryable: true });
  const twice = failing(restarted, 2);
  expect(await retry(twice, backoff(0))).toBe('answer');
  const always = failing(restarted, 9);
  await expect(retry(always, backoff(0))).rejects.toBe(restarted);
  expect(always.made).toBe(3);
});

test('does not retry an overloaded object', async () => {
  const overloaded = Object.assign(new Error('busy'), { retryable: true, overloaded: true });
  const call = failing(overloaded, 1);
  await expect(retry(call, backoff(0))).rejects.toBe(overloaded);
  expect(call.made).toBe(1);
});

test('waits between attempts for a random part of a doubling time', async () => {
  const restarted = new Error('restarted');
  for (const [random, pauses] of [
    [0, [25, 50]],
    [0.5, [37.5, 75]],
  ] as const) {
    const recorded = backoff(random);
    await retry(failing(restarted, 2), recorded);
    expect(recorded.pauses).toEqual(pauses);
  }
});
