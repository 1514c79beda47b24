import { expect, test } from 'vitest';
import { retry } from '../../worker/retry.ts';

/** A call that fails like this so many times and then answers; counts how often it was made. */
function failing(error: Error, times: number) {
  const call = async () => {
    call.made += 1;
    if (call.made <= times) throw error;
    return 'answer';
  };
  call.made = 0;
  return call;
}

test('a call that fails is made three times at most', async () => {
  const restarted = Object.assign(new Error('restarted'), { retryable: true });
  const twice = failing(restarted, 2);
  expect(await retry(twice)).toBe('answer');
  const always = failing(restarted, 9);
  await expect(retry(always)).rejects.toBe(restarted);
  expect(always.made).toBe(3);
});

test('an object that says it is overloaded is not asked again', async () => {
  const overloaded = Object.assign(new Error('busy'), { retryable: true, overloaded: true });
  const call = failing(overloaded, 1);
  await expect(retry(call)).rejects.toBe(overloaded);
  expect(call.made).toBe(1);
});
