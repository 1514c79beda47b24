import { describe, expect, test } from 'vitest';
import { parse } from './parsing.ts';

describe('prompt forms', () => {
  test.each([
    ['a text is one prompt', 'a', ['a']],
    ['texts are many', ['a', 'b'], ['a', 'b']],
    ['ids are one', [1, 2], [[1, 2]]],
    ['lists of ids are many prompts', [[1], [2, 3]], [[1], [2, 3]]],
    ['a mixture of ids and texts is one prompt', [12, 'a', 56], [[12, 'a', 56]]],
    ['a text and an id are one prompt', ['a', 1], [['a', 1]]],
    ['lists of mixtures are many prompts', [['a', 1], [2]], [['a', 1], [2]]],
    ['texts and lists may be mixed', ['a', [1]], ['a', [1]]],
    ['an empty text is a new document', '', ['']],
    ['null is a new document', null, ['']],
    ['an empty list is a new document', [], ['']],
    ['empty prompts keep their places', ['a', '', [], [1]], ['a', '', '', [1]]],
    ['a list of an empty list is one prompt', [[]], ['']],
  ])('%s', (_, prompt, prompts) => {
    expect(parse({ prompt }).generation.prompts).toEqual(prompts);
  });
});
