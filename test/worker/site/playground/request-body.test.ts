import { expect, test } from 'vitest';
import {
  pageFields,
  requestBody,
  sentFields,
  withField,
} from '../../../../worker/site/playground/request-body.ts';

const content = (text: string, mark: number | null = null) => ({ text, mark });

test('the whole text is the prompt, exactly as written, with the fields', () => {
  expect(requestBody('default', content(' a \n'), { temperature: 0 })).toEqual({
    model: 'default',
    prompt: ' a \n',
    temperature: 0,
  });
});

test('with a mark, the text after it is the suffix', () => {
  expect(requestBody('default', content('ab', 1), {})).toMatchObject({ prompt: 'a', suffix: 'b' });
});

test('the page asks for logprobs and ids, and heals the end of the prompt if the model can', () => {
  expect(sentFields(pageFields(false), {})).toEqual({ logprobs: 5, return_token_ids: true });
  expect(sentFields(pageFields(true), { top_k: 1 })).toEqual({
    logprobs: 5,
    return_token_ids: true,
    token_healing: true,
    top_k: 1,
  });
});

test.each(['token_healing', 'logprobs', 'return_token_ids'])(
  'the visitor can leave out %s, and take it back',
  (name) => {
    const preset = pageFields(true);
    const without = withField(preset, {}, name, undefined);
    expect(sentFields(preset, without)).not.toHaveProperty(name);
    expect(Object.keys(sentFields(preset, without))).toHaveLength(2);
    expect(withField(preset, without, name, preset[name])).toEqual({});
  },
);

test('a changed value takes precedence, and a field without a value is not sent', () => {
  const preset = pageFields(true);
  const changed = withField(preset, withField(preset, {}, 'logprobs', 2), 'token_healing', false);
  expect(sentFields(preset, changed)).toMatchObject({ logprobs: 2, token_healing: false });
  expect(sentFields(preset, withField(preset, { top_k: 1 }, 'top_k', undefined))).toEqual(preset);
});
