import fc from 'fast-check';
import { expect, test } from 'vitest';
import { tokenBytes } from '../../../../worker/site/api/token-bytes.ts';
import { alignTokens, differenceOf } from '../../../../worker/site/compare/text-alignment.ts';
import { runs } from '../../../support/random.ts';

const token = (name: string, logprob: number | null = -1) => ({ name, logprob, id: null, alternatives: [] });
const named = (...names: readonly string[]) => names.map((name) => token(name));
const shape = (...[text, left, right]: Parameters<typeof alignTokens>) =>
  alignTokens(text, left, right).map(({ text, left, right }) => [text, left.length, right.length]);

test('spans end where tokens of both sides end', () => {
  expect(shape('a king', named('a', ' king'), named('a', ' ki', 'ng'))).toEqual([
    ['a', 1, 1],
    [' king', 1, 2],
  ]);
  expect(shape('abcd', named('ab', 'cd'), named('a', 'bc', 'd'))).toEqual([['abcd', 2, 3]]);
});

test('a special token in front, and tokens whose bytes are not in the text, belong to their neighbours', () => {
  expect(shape('a king', named('<s>', 'a', ' king'), named('a', ' king'))).toEqual([
    ['a', 2, 1],
    [' king', 1, 1],
  ]);
  expect(shape('a ﬁsh', named('a', ' fi', 'sh'), named('a', ' ﬁ', 'sh'))).toEqual([
    ['a', 1, 1],
    [' ﬁ', 1, 1],
    ['sh', 1, 1],
  ]);
  expect(shape('ab', named('x'), named('a', 'b'))).toEqual([['ab', 1, 2]]);
});

test('parts of a character are aligned by their bytes, and shown as the character', () => {
  const parts = ['bytes:\\xf0\\x9f', 'bytes:\\x99\\x82'];
  expect(shape('🙂!', named(...parts, '!'), named('🙂', '!'))).toEqual([
    ['🙂', 2, 1],
    ['!', 1, 1],
  ]);
  expect(shape('🙂', named(...parts), named(...parts))).toEqual([['🙂', 2, 2]]);
});

/** Cuts a text into tokens at some of its characters. */
const cut = (text: string, places: readonly boolean[]) => {
  const tokens: string[] = [];
  for (const [at, character] of Array.from(text).entries())
    if (at === 0 || places[at % Math.max(1, places.length)] === true) tokens.push(character);
    else tokens.push(`${tokens.pop()}${character}`);
  return named(...tokens);
};

test('each token is in one span, in order, and the spans are the text, whatever the tokens', () => {
  const places = fc.array(fc.boolean(), { minLength: 1, maxLength: 7 });
  const text = fc.string({ unit: fc.constantFrom('a', ' ', 'é', '🙂', '\n'), minLength: 1, maxLength: 30 });
  const property = fc.property(text, places, places, (whole, first, second) => {
    const [left, right] = [cut(whole, first), cut(whole, second)];
    const spans = alignTokens(whole, left, right);
    expect(spans.map(({ text }) => text).join('')).toBe(whole);
    expect(spans.flatMap((span) => span.left)).toEqual(left);
    expect(spans.flatMap((span) => span.right)).toEqual(right);
    for (const { text, left, right, bytes } of spans) {
      expect([left, right].map((side) => side.map((each) => each.name).join(''))).toEqual([text, text]);
      expect(bytes).toBe(tokenBytes(text).length);
    }
  });
  fc.assert(property, { numRuns: runs(500) });
});

test('sums count the spans with logprobs of both sides', () => {
  const spans = alignTokens(
    'a king',
    [token('a', null), token(' king', -2)],
    [token('a', -1), token(' king', -3)],
  );
  expect(spans.map(({ leftLogprob, rightLogprob }) => [leftLogprob, rightLogprob])).toEqual([
    [null, -1],
    [-2, -3],
  ]);
  expect(differenceOf(spans)).toEqual({ spans: 1, bytes: 5, left: -2, right: -3 });
});
