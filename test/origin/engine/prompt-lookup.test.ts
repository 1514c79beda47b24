import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DraftLength, lookUp } from '../../../origin/engine/speculation.ts';

/** Applies the rule directly: longest ending of 3, 2 or 1 tokens that occurred before, latest occurrence first. */
function plainLookUp(tokens: readonly number[], max: number): number[] {
  for (const length of [3, 2, 1]) {
    const ending = tokens.slice(-length);
    for (let start = tokens.length - length - 1; start >= 0; start--) {
      if (ending.length < length || ending.some((token, at) => tokens[start + at] !== token)) continue;
      const text = [...tokens];
      for (let at = start + length; text.length < tokens.length + max; at++) text.push(text[at]!);
      return text.slice(tokens.length);
    }
  }
  return [];
}

describe('prompt look-up', () => {
  it('returns the tokens after the latest occurrence of the longest known ending', () => {
    const tokens = fc.array(fc.nat(3), { maxLength: 40 });
    fc.assert(
      fc.property(tokens, fc.integer({ min: 1, max: 12 }), (text, max) => {
        expect([...lookUp(Int32Array.from(text), max)]).toEqual(plainLookUp(text, max));
      }),
      { numRuns: 3000 },
    );
  });

  it('returns nothing after a new token', () => {
    expect(lookUp(Int32Array.of(1, 2, 3), 8)).toHaveLength(0);
    expect(lookUp(Int32Array.of(1), 8)).toHaveLength(0);
  });
});

describe('the draft length', () => {
  it('stays within its bounds, and is 0 for at most 64 steps in a row', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.nat(), { maxLength: 200 }), (max, draws) => {
        const length = new DraftLength(max);
        let pause = 0;
        for (const draw of draws) {
          const next = length.next();
          expect(next).toBeLessThanOrEqual(max);
          pause = next === 0 ? pause + 1 : 0;
          expect(pause).toBeLessThanOrEqual(64);
          if (next > 0) length.observe(draw % (next + 1));
        }
      }),
    );
  });

  it('drafts in fewer than one of 40 steps if no draft is accepted', () => {
    const length = new DraftLength(8);
    let drafted = 0;
    for (let step = 0; step < 1000; step++) {
      if (length.next() === 0) continue;
      drafted++;
      length.observe(0);
    }
    expect(drafted).toBeLessThan(25);
    expect(drafted).toBeGreaterThan(10);
  });

  it('doubles up to its maximum once drafts are accepted', () => {
    const length = new DraftLength(8);
    length.observe(0);
    for (let step = 0; step < 4; step++) expect(length.next()).toBe(0);
    const lengths = Array.from({ length: 4 }, () => {
      const next = length.next();
      length.observe(next);
      return next;
    });
    expect(lengths).toEqual([2, 4, 8, 8]);
  });
});
