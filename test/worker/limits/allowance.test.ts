import { expect, test } from 'vitest';
import type { ReservationResult, Spend } from '../../../worker/env/limiter-protocol.ts';
import { Allowance } from '../../../worker/limits/allowance.ts';
import { unchecked } from '../../../worker/limits/limit-errors.ts';

/** The allowance of a completion of up to 2,000 tokens, with 100 reserved, whose minute has no room. */
function waitingAllowance(answer: 'refusal' | 'none' = 'refusal') {
  const grown: Spend[] = [];
  let slice = 0;
  const refused: ReservationResult = {
    admitted: false,
    headers: {},
    refusal: {
      kind: 'tokens',
      subject: 'tenant',
      limit: 9,
      used: 9,
      requested: 1,
      retryAfterMs: 60_000,
    },
  };
  const allowance = new Allowance({
    reserved: { tokens: 100, money: 0 },
    tokens: { prompt: 0, most: 2_000 },
    price: null,
    growHere: ({ tokens }) => {
      const more = { tokens: Math.min(tokens, slice), money: 0 };
      if (more.tokens > 0) grown.push(more);
      return more;
    },
    growAtHome: () => (answer === 'none' ? new Promise(() => {}) : Promise.resolve(refused)),
    errorOf: unchecked,
    pause: () => new Promise(() => {}),
    now: () => 0,
    waits: true,
    waitsUntil: 600_000,
  });
  const fillSlice = () => {
    slice = 500;
  };
  return { allowance, grown, fillSlice };
}

test.each([
  ['the minute', 'refusal'],
  ['a limiter that hangs', 'none'],
] as const)('a completion that has ended waits no longer for %s', async (_, answer) => {
  const { allowance } = waitingAllowance(answer);
  const covered = allowance.cover(101);
  await new Promise(setImmediate);
  allowance.end();
  expect(await Promise.race([covered, new Promise((resolve) => setImmediate(resolve, 'waits'))])).toBeNull();
});

test('a completion that has ended while it waited reserves nothing more', async () => {
  const { allowance, grown, fillSlice } = waitingAllowance();
  void allowance.cover(101);
  await new Promise(setImmediate);
  allowance.end();
  fillSlice();
  allowance.note(101);
  expect(grown).toEqual([]);
});
