import { expect, test } from 'vitest';
import { generationRequest } from '../../shared/generation.ts';
import { detokenizeRequest } from '../../shared/tokenization.ts';
import { request } from '../support/generation-request.ts';

test.each([['text'], [''], [[0]], [[5, 'text', 7]], [['a', 'b']], [[Number.MAX_SAFE_INTEGER]]])(
  'the origin takes the prompt %j',
  (prompt) => {
    const parsed = generationRequest.parse({ ...request({}), prompts: [prompt] });
    expect(parsed.prompts).toEqual([prompt]);
  },
);

test.each([[[]], [[-1]], [[1.5]], [[null]], [[[1]]], [[2 ** 53]], [7], [null], [{ 0: 1, length: 1 }]])(
  'the origin refuses the prompt %j, naming it',
  (prompt) => {
    const { error } = generationRequest.safeParse({ ...request({}), prompts: ['good', prompt] });
    expect(error?.issues[0]?.path).toEqual(['prompts', 1]);
  },
);

test.each([
  [[1, 2], null],
  [[], null],
  [
    [1, -1],
    ['tokens', 1],
  ],
  [
    [1, 'a'],
    ['tokens', 1],
  ],
  ['12', ['tokens']],
  [undefined, ['tokens']],
])('to be turned into text: %j', (tokens, fault) => {
  const { error } = detokenizeRequest.safeParse({ model: 'tiny', tokens });
  expect(error?.issues[0]?.path ?? null).toEqual(fault);
});
