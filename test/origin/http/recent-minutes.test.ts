import { expect, test } from 'vitest';
import { RecentMinutes } from '../../../origin/http/recent-minutes.ts';

const MINUTE = 60_000;
/** Begins a minute. */
const START = 1_800_000_000_000;

test('has the tokens and first tokens of the last hour by minute, and nothing older', () => {
  const recent = new RecentMinutes([0.1, 1]);
  recent.addTokens('a', 5, START);
  recent.addTokens('a', 6, START + MINUTE - 1);
  recent.addTokens('b', 7, START);
  for (const seconds of [0.05, 0.1, 0.5, 3]) recent.addFirstToken('a', seconds, START + MINUTE);
  const [first, second] = [START / 1000, START / 1000 + 60];
  const delays = [
    { at: first, tokens: 11, delays: [0, 0, 0] },
    { at: second, tokens: 0, delays: [2, 1, 1] },
  ];
  expect(recent.of('a', START + MINUTE)).toEqual(delays);
  expect(recent.of('b', START)).toEqual([{ ...delays[0], tokens: 7 }]);
  expect(recent.of('c', START)).toEqual([]);
  expect(recent.of('a', START + 60 * MINUTE)).toEqual(delays);
  expect(recent.of('a', START + 61 * MINUTE)).toEqual(delays.slice(1));
  // The place of the first minute is taken again.
  recent.addTokens('a', 1, START + 61 * MINUTE);
  expect(recent.of('a', START + 61 * MINUTE).map(({ tokens }) => tokens)).toEqual([0, 1]);
});
