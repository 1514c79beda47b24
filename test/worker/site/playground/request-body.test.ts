import { expect, test } from 'vitest';
import { requestBody } from '../../../../worker/site/playground/request-body.ts';

const content = (text: string, mark: number | null = null) => ({ text, mark });

test('the whole text is the prompt, exactly as written, with logprobs', () => {
  expect(requestBody('default', content(' a \n'), { temperature: 0 })).toEqual({
    ...{ model: 'default', prompt: ' a \n', temperature: 0 },
    ...{ logprobs: 5, return_token_ids: true },
  });
});

test('with a mark, the text after it is the suffix', () => {
  expect(requestBody('default', content('ab', 1), {})).toMatchObject({ prompt: 'a', suffix: 'b' });
});

test('the end of the prompt is healed if the model can, unless the parameters say otherwise', () => {
  expect(requestBody('default', content('a'), {}, true)).toMatchObject({ token_healing: true });
  expect(requestBody('default', content('a'), { token_healing: false }, true)).toMatchObject({
    token_healing: false,
  });
  expect(requestBody('default', content('a'), {})).not.toHaveProperty('token_healing');
});

test('logprobs of the parameters take precedence', () => {
  expect(requestBody('default', content('a'), { logprobs: 2 })).toMatchObject({ logprobs: 2 });
});
