import { expect, test } from 'vitest';
import { HubError, TransientError } from '../../../origin/hub/hub-error.ts';
import { withPatience } from '../../../origin/hub/retries.ts';

function patience(attempts: number, random = 0.5) {
  const pauses: number[] = [];
  const told: number[] = [];
  const sleep = async (ms: number) => void pauses.push(ms);
  const onRetry = (_: string, delayMs: number) => void told.push(delayMs);
  return { pauses, told, options: { attempts, sleep, random: () => random, onRetry } };
}

const failing = (count: number, error: () => Error, onAttempt?: (progressed: () => void) => void) => {
  let left = count;
  return async (progressed: () => void) => {
    onAttempt?.(progressed);
    left -= 1;
    if (left >= 0) throw error();
    return 'done';
  };
};
const lost = () => new TransientError('lost');

test('pauses double up to a bound, each at least half of what it could be', async () => {
  const low = patience(9, 0);
  await withPatience(low.options, failing(8, lost));
  expect(low.pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  const high = patience(9, 0.999_999);
  await withPatience(high.options, failing(8, lost));
  expect(high.pauses).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000]);
});

test('the attempts that bring nothing are counted, and the last reason is told', async () => {
  const { options, pauses } = patience(3);
  await expect(withPatience(options, failing(3, lost))).rejects.toThrow(
    new HubError('given up after 3 attempts: lost'),
  );
  expect(pauses).toHaveLength(2);
});

test('an attempt that brought something starts the count anew', async () => {
  const { options } = patience(2);
  await expect(
    withPatience(
      options,
      failing(20, lost, (progressed) => progressed()),
    ),
  ).resolves.toBe('done');
});

test('the server’s own pause is kept, within reason, and told as it will be', async () => {
  const { options, pauses, told } = patience(3);
  await withPatience(
    options,
    failing(1, () => new TransientError('busy', 3000)),
  );
  await withPatience(
    options,
    failing(1, () => new TransientError('busy', 86_400_000)),
  );
  expect(pauses).toEqual([3000, 300_000]);
  expect(told).toEqual(pauses);
});

test('other faults are not tried again', async () => {
  const { options, pauses } = patience(3);
  await expect(
    withPatience(
      options,
      failing(1, () => new HubError('no')),
    ),
  ).rejects.toThrow('no');
  expect(pauses).toEqual([]);
});
