import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DraftLength, lookUp } from '../../../origin/engine/speculation.ts';

/** Said plainly: the longest of 3, 2, 1 last tokens that stood somewhere before, the latest place, what came then. */
function plainLookUp(tokens: readonly number[], most: number): number[] {
  for (const length of [3, 2, 1]) {
    const ending = tokens.slice(-length);
    for (let start = tokens.length - length - 1; start >= 0; start--) {
      if (ending.length < length || ending.some((token, at) => tokens[start + at] !== token)) continue;
      const text = [...tokens];
      for (let at = start + length; text.length < tokens.length + most; at++) text.push(text[at]!);
      return text.slice(tokens.length);
    }
  }
  return [];
}

describe('prompt look-up', () => {
  it('continues as the text went on after the latest occurrence of its longest known ending', () => {
    const tokens = fc.array(fc.nat(3), { maxLength: 40 });
    fc.assert(
      fc.property(tokens, fc.integer({ min: 1, max: 12 }), (text, most) => {
        expect([...lookUp(Int32Array.from(text), most)]).toEqual(plainLookUp(text, most));
      }),
      { numRuns: 3000 },
    );
  });

  it('guesses nothing after a token that is new', () => {
    expect(lookUp(Int32Array.of(1, 2, 3), 8)).toHaveLength(0);
    expect(lookUp(Int32Array.of(1), 8)).toHaveLength(0);
  });
});

describe('the length of drafts', () => {
  it('stays within its bounds, and is never nothing for more than 64 steps', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.nat(), { maxLength: 200 }), (most, draws) => {
        const length = new DraftLength(most);
        let pause = 0;
        for (const draw of draws) {
          const next = length.next();
          expect(next).toBeLessThanOrEqual(most);
          pause = next === 0 ? pause + 1 : 0;
          expect(pause).toBeLessThanOrEqual(64);
          if (next > 0) length.observe(draw % (next + 1));
        }
      }),
    );
  });

  it('costs a text that never repeats itself less than one step in forty', () => {
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

  it('is all there is again soon after a repetition begins', () => {
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
