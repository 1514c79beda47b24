import { expect, test } from 'vitest';
import { retry } from '../../worker/retry.ts';

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

test('makes at most three attempts', async () => {
  const restarted = Object.assign(new Error('restarted'), { retryable: true });
  const twice = failing(restarted, 2);
  expect(await retry(twice)).toBe('answer');
  const always = failing(restarted, 9);
  await expect(retry(always)).rejects.toBe(restarted);
  expect(always.made).toBe(3);
});

test('does not retry an overloaded object', async () => {
  const overloaded = Object.assign(new Error('busy'), { retryable: true, overloaded: true });
  const call = failing(overloaded, 1);
  await expect(retry(call)).rejects.toBe(overloaded);
  expect(call.made).toBe(1);
});
