import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { runs } from '../../support/random.ts';

const someTokens = fc.array(fc.oneof(fc.nat(5), fc.nat(200_000)), { maxLength: 40 });

describe('a token history', () => {
  it('keeps the counts of every window correct, whenever it is first read and whatever is removed', () => {
    const anyWindows = fc.array(fc.tuple(fc.integer({ min: -1, max: 12 }), fc.nat(40)), { maxLength: 3 });
    const removals = fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 3 });
    fc.assert(
      fc.property(someTokens, someTokens, anyWindows, removals, (prompt, generated, windows, removals) => {
        const history = new TokenHistory(Int32Array.from(prompt), prompt.length + generated.length);
        const all = [...prompt];
        for (let pushed = 0; pushed <= generated.length; pushed++) {
          for (const [window, since] of windows) {
            if (pushed >= since) expectCounts(history, window, all);
          }
          if (pushed < generated.length) {
            history.push(generated[pushed]!);
            all.push(generated[pushed]!);
          }
        }
        for (const removed of removals) {
          all.length = Math.max(prompt.length, all.length - removed);
          history.truncate(all.length);
          for (const [window] of windows) expectCounts(history, window, all);
        }
        while (all.length < prompt.length + generated.length) {
          history.push(200_001 + all.length);
          all.push(200_001 + all.length);
          for (const [window] of windows) expectCounts(history, window, all);
        }
        expect(history.length).toBe(all.length);
        expect(history.promptLength).toBe(prompt.length);
        expect(all.map((_, i) => history.at(i))).toEqual(all);
      }),
      { numRuns: runs(200) },
    );
  });

  it('rejects tokens beyond its capacity and reads outside its length', () => {
    const history = new TokenHistory(Int32Array.of(1, 2), 3);
    history.push(3);
    expect(() => history.push(4)).toThrow(RangeError);
    expect(() => history.at(3)).toThrow(RangeError);
    expect(() => history.at(-1)).toThrow(RangeError);
    expect(() => new TokenHistory(Int32Array.of(1, 2), 1)).toThrow(RangeError);
  });

  it('does not change with the array it was created from', () => {
    const prompt = Int32Array.of(1, 2);
    const history = new TokenHistory(prompt, 2);
    prompt[0] = 9;
    expect(history.at(0)).toBe(1);
  });
});

function expectCounts(history: TokenHistory, window: number, all: readonly number[]): void {
  const start = window < 0 ? 0 : Math.max(0, all.length - window);
  const expected = new Map<number, { total: number; generated: number }>();
  for (let i = start; i < all.length; i++) {
    const count = expected.get(all[i]!) ?? { total: 0, generated: 0 };
    count.total++;
    if (i >= history.promptLength) count.generated++;
    expected.set(all[i]!, count);
  }
  const { distinct, ids, total, generated } = history.countsOver(window);
  const entries = Array.from({ length: distinct }, (_, entry) => entry);
  expect(new Set(ids.subarray(0, distinct)).size).toBe(distinct);
  const present = entries.filter((entry) => total[entry] !== 0 || generated[entry] !== 0);
  const counted = new Map(
    present.map((entry) => [ids[entry]!, { total: total[entry]!, generated: generated[entry]! }]),
  );
  expect(counted).toEqual(expected);
}
