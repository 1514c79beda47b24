import { expect, test } from 'vitest';
import type { PlacedTokens } from '../../../../worker/site/tokens/placed-tokens.ts';
import {
  rankOf,
  tokenRows,
  tokensCsv,
  tokensJson,
  withoutTokens,
} from '../../../../worker/site/tokens/token-rows.ts';

const token = (name: string, logprob: number | null = Math.log(0.5), id: number | null = 7) => ({
  name,
  logprob,
  id,
  alternatives: [],
});

const TEXT = '🙂x=1🙂';
const PLACED: readonly PlacedTokens[] = [
  { from: 3, to: 4, tokens: [token('=', -0.25, 3)] },
  { from: 4, to: 5, tokens: [token('1', null, null)] },
  { from: 5, to: 7, tokens: ['bytes:\\xf0\\x9f', 'bytes:\\x99\\x82'].map((name) => token(name)) },
];

test('every token has a row with its place in characters, and typed text is counted', () => {
  const rows = tokenRows(TEXT, PLACED);
  expect(rows.map(({ index, offset, token }) => [index, offset, token.name])).toEqual([
    [0, 2, '='],
    [1, 3, '1'],
    [2, 4, 'bytes:\\xf0\\x9f'],
    [3, 4, 'bytes:\\x99\\x82'],
  ]);
  expect(withoutTokens(TEXT, PLACED)).toBe(2);
});

test('a file has exact bytes, also of parts of a character, and a spreadsheet runs nothing of it', () => {
  const rows = tokenRows(TEXT, PLACED);
  expect(tokensCsv(rows).split('\r\n')).toEqual([
    'index,text_offset,id,text,bytes,logprob,probability,rank',
    `0,2,3,'=,\\x3d,-0.25,${Math.exp(-0.25)},`,
    '1,3,,1,\\x31,,,',
    `2,4,7,,\\xf0\\x9f,${Math.log(0.5)},0.5,`,
    `3,4,7,,\\x99\\x82,${Math.log(0.5)},0.5,`,
    '',
  ]);
  const { text, tokens } = JSON.parse(tokensJson(TEXT, rows));
  expect(text).toBe(TEXT);
  expect(tokens[2]).toEqual({
    ...{ index: 2, text_offset: 4, id: 7, text: null, bytes: [0xf0, 0x9f] },
    ...{ logprob: Math.log(0.5), probability: 0.5, rank: null },
  });
});

test('a token has a rank if the list proves it', () => {
  const of = (chosen: string, ...names: readonly string[]) =>
    rankOf({ ...token(chosen), alternatives: names.map((name) => ({ name, logprob: -1, id: null })) });
  expect([of('a', 'a', 'b', 'c'), of('b', 'a', 'b', 'c')]).toEqual([1, 2]);
  expect([of('c', 'a', 'b', 'c'), of('a', 'a'), of('a')]).toEqual([null, null, null]);
});
