import { expect, test } from 'vitest';
import { waitingGrowth } from './waiting-growth.ts';

const RESERVED = { tokens: 100, money: 0 };

test.each([
  ['the minute', 'refusal'],
  ['a limiter that hangs', 'none'],
] as const)('a completion that has ended waits no longer for %s', async (_, answer) => {
  const { growth } = waitingGrowth(RESERVED, answer);
  const covered = growth.until(101, false);
  await new Promise(setImmediate);
  growth.end();
  expect(await Promise.race([covered, new Promise((resolve) => setImmediate(resolve, 'waits'))])).toBeNull();
});

test('a completion that has ended while it waited reserves nothing more', async () => {
  const { growth, grown, fillSlice } = waitingGrowth(RESERVED);
  void growth.until(101, false);
  await new Promise(setImmediate);
  growth.end();
  fillSlice();
  growth.ahead(101);
  expect(await growth.until(101, false)).toBeNull();
  expect(grown).toEqual([]);
});
