import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopChecker } from '../../../../origin/engine/text/stop-checker.ts';
import { runs } from '../../../support/random.ts';
import { targets } from '../support/search-targets.ts';

interface Outcome {
  readonly text: string;
  readonly match: string | null;
}

/** Applies the rule directly: earliest end, then earliest start. */
function plainReference(pieces: readonly string[], stops: readonly string[], includeStop: boolean): Outcome {
  const text = pieces.join('');
  for (let end = 1; end <= text.length; end++) {
    for (let start = 0; start < end; start++) {
      const match = stops.find((stop) => stop === text.slice(start, end));
      if (match !== undefined) return { text: text.slice(0, includeStop ? end : start), match };
    }
  }
  return { text, match: null };
}

function run(pieces: readonly string[], stops: readonly string[], includeStop: boolean): Outcome {
  const checker = new StopChecker(targets(stops), includeStop);
  let text = '';
  for (const piece of pieces) text += checker.push(piece, true);
  return { text: text + checker.flush(), match: checker.match };
}

const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '😀'), maxLength: 6 });
const pieces = fc.array(letters, { maxLength: 12 });
const stops = fc.array(
  letters.filter((stop) => stop.length > 0),
  { maxLength: 4 },
);

describe('stop strings', () => {
  it('end the text where a plain search does, however it is split', () => {
    fc.assert(
      fc.property(pieces, stops, fc.boolean(), (parts, strings, includeStop) => {
        expect(run(parts, strings, includeStop)).toEqual(plainReference(parts, strings, includeStop));
      }),
      { numRuns: runs(3000) },
    );
  });

  it('hold back exactly the longest tail that can become a stop string', () => {
    fc.assert(
      fc.property(pieces, stops, (parts, strings) => {
        const checker = new StopChecker(targets(strings), false);
        let all = '';
        let shown = '';
        for (const piece of parts) {
          shown += checker.push(piece, true);
          if (checker.match !== null) return;
          all += piece;
          const starts = (length: number) =>
            strings.some((stop) => length < stop.length && stop.startsWith(all.slice(all.length - length)));
          let hold = all.length;
          while (hold > 0 && !starts(hold)) hold--;
          expect(shown).toBe(all.slice(0, all.length - hold));
        }
      }),
      { numRuns: runs(2000) },
    );
  });

  it('never split a surrogate pair', () => {
    const checker = new StopChecker(targets(['\ud83d', '😀!']), false);
    expect(checker.push('😁', true)).toBe('😁');
    expect(checker.push('😀', true)).toBe('');
    expect(checker.push('?', true)).toBe('😀?');
  });

  it('do not match while not armed, but match later if they only begin there', () => {
    const checker = new StopChecker(targets(['ab', 'xyz']), false);
    expect(checker.push('ab x', false)).toBe('ab ');
    expect(checker.push('yz', true)).toBe('');
    expect(checker.match).toBe('xyz');
  });

  it('do not match late if they were complete before being armed', () => {
    const checker = new StopChecker(targets(['b', 'abc']), false);
    expect(checker.push('ab', false)).toBe('');
    expect(checker.push('x', true)).toBe('abx');
    expect(checker.match).toBeNull();
  });

  it('prefer the earliest start among matches with the same end', () => {
    const checker = new StopChecker(targets(['b', 'ab']), false);
    expect(checker.push('cab', true)).toBe('c');
    expect(checker.match).toBe('ab');
  });
});
