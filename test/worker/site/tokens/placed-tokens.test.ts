import { expect, test } from 'vitest';
import { TokenPlacer } from '../../../../worker/site/tokens/placed-tokens.ts';

const token = (name: string, offset: number) =>
  [{ name, logprob: -1, id: null, alternatives: [] }, offset] as const;

const shown = (placer: TokenPlacer, text: string, tokens: ReturnType<typeof token>[]) =>
  placer
    .place(
      text,
      tokens.map(([one]) => one),
      tokens.map(([, offset]) => offset),
    )
    .map(({ from, to, tokens: own }) => [from, to, ...own.map(({ name }) => name)]);

test('places the tokens of parts one after another, from the start position on', () => {
  const placer = new TokenPlacer(10);
  expect(shown(placer, 'ab c', [token('ab', 0), token(' c', 2)])).toEqual([
    [10, 12, 'ab'],
    [12, 14, ' c'],
  ]);
  expect(shown(placer, 'd', [token('d', 4)])).toEqual([[14, 15, 'd']]);
});

test('counts characters beyond the basic plane as two units, as editors do', () => {
  const placer = new TokenPlacer(0);
  expect(shown(placer, '😀a', [token('😀', 0), token('a', 1)])).toEqual([
    [0, 2, '😀'],
    [2, 3, 'a'],
  ]);
});

test('puts the tokens of one character in one place', () => {
  const parts = [token('bytes:\\xf0\\x9f', 1), token('bytes:\\x98', 1), token('bytes:\\x80', 1)];
  expect(shown(new TokenPlacer(0), 'a😀b', [token('a', 0), ...parts, token('b', 2)])).toEqual([
    [0, 1, 'a'],
    [1, 3, ...parts.map(([{ name }]) => name)],
    [3, 4, 'b'],
  ]);
});

test('a hidden token takes no place', () => {
  expect(shown(new TokenPlacer(0), 'a', [token('a', 0), token('<|end|>', 1)])).toEqual([[0, 1, 'a']]);
});
