import { describe, expect, test } from 'vitest';
import { parse } from './parsing.ts';

describe('prompt forms', () => {
  test.each([
    ['a text is one prompt', 'a', ['a']],
    ['texts are many', ['a', 'b'], ['a', 'b']],
    ['ids are one', [1, 2], [[1, 2]]],
    ['lists of ids are many', [[1], [2, 3]], [[1], [2, 3]]],
    ['ids and texts mixed are one', [12, 'a', 56], [[12, 'a', 56]]],
    ['a text among texts and an id makes one', ['a', 1], [['a', 1]]],
    ['lists of mixtures are many', [['a', 1], [2]], [['a', 1], [2]]],
    ['texts and lists may stand side by side', ['a', [1]], ['a', [1]]],
  ])('%s', (_, prompt, prompts) => {
    expect(parse({ prompt }).generation.prompts).toEqual(prompts);
  });
});
