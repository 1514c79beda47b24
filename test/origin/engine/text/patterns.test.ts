import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopChecker } from '../../../../origin/engine/text/stop-checker.ts';
import { runs } from '../../../support/random.ts';
import { patternSet, targets } from '../support/search-targets.ts';

const PATTERNS = [
  'ab+c',
  '(?:ab|bc)a',
  'a.c',
  '[^a]bb',
  'c(?:ab)*c',
  'bé|😀a',
  'a{2,3}b',
  '(?:a|b)*cc',
  '\\p{Lu}b',
];
const UNITS = ['a', 'b', 'c', 'B', 'é', '😀'] as const;

const EXPRESSIONS = new Map(PATTERNS.map((source) => [source, new RegExp(`^(?:${source})$`, 'u')]));
const matches = (pattern: string, text: string) => EXPRESSIONS.get(pattern)?.test(text) ?? false;

const pieces = fc.array(fc.string({ unit: fc.constantFrom(...UNITS), maxLength: 3 }), { maxLength: 8 });
const patterns = fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: 1, maxLength: 3 });
const stops = fc.array(fc.constantFrom('bb', 'aca', 'é'), { maxLength: 2 });

/** Tries every start at every end: earliest end, then earliest start wins, then a string before a pattern. */
function plainSearch(text: string, strings: readonly string[], sources: readonly string[]) {
  for (let end = 1; end <= text.length; end++) {
    for (let start = 0; start < end; start++) {
      const part = text.slice(start, end);
      if (!part.isWellFormed()) continue;
      const match = strings.find((stop) => stop === part) ?? sources.find((source) => matches(source, part));
      if (match !== undefined) return { start, end, match };
    }
  }
  return null;
}

/** Every text of up to four characters. */
const EXTENSIONS = (() => {
  let longest = [''];
  const all: string[] = [];
  for (let length = 1; length <= 4; length++) {
    longest = longest.flatMap((text) => UNITS.map((unit) => text + unit));
    all.push(...longest);
  }
  return all;
})();

describe('stop patterns', () => {
  it('end the text where trying every part of it does, however it is split', () => {
    fc.assert(
      fc.property(pieces, stops, patterns, fc.boolean(), (parts, strings, sources, includeStop) => {
        const checker = new StopChecker(targets(strings, sources), includeStop);
        const shown = parts.map((piece) => checker.push(piece, true)).join('');
        const text = parts.join('');
        const found = plainSearch(text, strings, sources);
        const cut = found === null ? text.length : includeStop ? found.end : found.start;
        expect(shown + checker.flush()).toBe(text.slice(0, cut));
        if (found !== null) expect([...strings, ...sources]).toContain(checker.match);
        if (found !== null) {
          const part = text.slice(found.start, found.end);
          expect(checker.match === part || matches(checker.match ?? '', part)).toBe(true);
        } else expect(checker.match).toBeNull();
      }),
      { numRuns: runs(500) },
    );
  });

  it('hold back exactly the longest tail that can become a match', () => {
    const parts = fc.string({ unit: fc.constantFrom(...UNITS), maxLength: 6 });
    fc.assert(
      fc.property(parts, fc.constantFrom(...PATTERNS), (text, source) => {
        const checker = new StopChecker(targets([], [source]), false);
        const shown = checker.push(text, true);
        if (checker.match !== null) return;
        const canMatch = (start: number) =>
          EXTENSIONS.some((extension) => matches(source, text.slice(start) + extension));
        const starts = Array.from({ length: text.length }, (_, start) => start);
        const held =
          starts.find((start) => text.slice(start).isWellFormed() && canMatch(start)) ?? text.length;
        expect(shown).toBe(text.slice(0, held));
      }),
      { numRuns: runs(150) },
    );
  });

  it.each([
    ['a(', /'stop_regex\[1\]': The group is not closed at line 1, column 2/],
    ['a*', /'stop_regex\[1\]': It matches the empty text/],
    ['^a', /'stop_regex\[1\]': Anchors, look-around and word boundaries are not supported/],
    ['a$', /Anchors, look-around and word boundaries are not supported/],
    ['a\\b', /word boundaries are not supported/],
    ['[]', /'stop_regex\[1\]': No text can match/],
    ['a{5000}', /too large/],
  ])('of %s are refused with the field and the index', (source, message) => {
    expect(() => patternSet(['a', source])).toThrow(message);
    expect(() => patternSet(['a', source])).toThrow(expect.objectContaining({ param: 'stop_regex[1]' }));
  });
});
