import { expect, test } from 'vitest';
import {
  continueIds,
  idsOf,
  idsOfText,
  keepIds,
  openIdPrompts,
  readIds,
  textOfIds,
} from '../../../../worker/site/playground/id-prompt.ts';
import { CONNECTION, serveCompletions } from '../support/fake-completions.ts';

test.each([
  ['1, 2 3', [1, 2, 3]],
  ['[1,2,3]', [1, 2, 3]],
  [' [ 1 ]\n', [1]],
  ['', []],
  ['[]', []],
])('%j is read as ids', (written, ids) => {
  expect(readIds(written)).toEqual({ ids });
});

test.each(['1.5', '-1', 'a', '[1', '[[1]]', '99999999999999999999'])('%j is refused', (written) => {
  expect(readIds(written)).toHaveProperty('fault');
});

test('ids stand for exactly their text, and undo brings them back', () => {
  const prompts = openIdPrompts();
  prompts.isOn.value = true;
  keepIds(prompts, { text: 'ab', ids: [1, 2] });
  keepIds(prompts, { text: 'ac', ids: [1, 3] });
  expect(idsOf(prompts, { text: 'ab', mark: null })).toEqual([1, 2]);
  expect(idsOf(prompts, { text: 'abc', mark: null })).toBeNull();
  expect(idsOf(prompts, { text: 'ab', mark: 1 })).toBeNull();
  prompts.isOn.value = false;
  expect(idsOf(prompts, { text: 'ab', mark: null })).toBeNull();
});

test('a continued text has the ids of its prompt and of all that was generated, or none', () => {
  const prompts = openIdPrompts();
  prompts.isOn.value = true;
  keepIds(prompts, { text: 'a', ids: [1] });
  const place = (name: string, from: number, to: number, id: number | null) => ({
    ...{ from, to, tokens: [{ name, id, logprob: -1, alternatives: [] }] },
  });
  const before = { text: 'a', mark: null };
  continueIds(prompts, before, {
    text: 'abc',
    mark: null,
    tokens: [place('b', 1, 2, 7), place('c', 2, 3, 8)],
  });
  expect(idsOf(prompts, { text: 'abc', mark: null })).toEqual([1, 7, 8]);
  continueIds(prompts, before, { text: 'abd', mark: null, tokens: [place('b', 1, 2, 7)] });
  continueIds(prompts, before, { text: 'ax', mark: null, tokens: [place('x', 1, 2, null)] });
  expect(['abd', 'ax'].map((text) => idsOf(prompts, { text, mark: null }))).toEqual([null, null]);
});

test('a server tells text and ids by its tokenizer; a model without one by an echo', async () => {
  const sent = serveCompletions(({ body }) => {
    if ('tokens' in body) return Response.json({ content: 'ab' });
    if (body.echo === true) return Response.json({ choices: [{ text: 'cd', prompt_token_ids: [5] }] });
    const error = { message: 'No.', type: 'x', param: 'model', code: 'unsupported_endpoint' };
    return Response.json({ error }, { status: 415 });
  });
  expect(await textOfIds(CONNECTION, 'm', [1, 2])).toEqual({ text: 'ab', ids: [1, 2] });
  expect(await idsOfText(CONNECTION, 'm', 'cd')).toEqual({ text: 'cd', ids: [5] });
  expect(await textOfIds(CONNECTION, 'm', [])).toEqual({ text: '', ids: [] });
  expect(sent.map(({ body }) => body)).toEqual([
    { model: 'm', tokens: [1, 2] },
    { model: 'm', prompt: 'cd' },
    { model: 'm', prompt: 'cd', max_tokens: 0, echo: true, return_token_ids: true },
  ]);
});
