import { describe, expect, test } from 'vitest';
import { workerForTests } from './support/worker-for-tests.ts';

const { worker } = workerForTests();

describe('tokenizer routes', () => {
  const post = (path: string, body: unknown) =>
    worker.request(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });

  test('answer as evaluation clients expect', async () => {
    expect(await (await post('/tokenize', { prompt: 'Hi', add_special_tokens: false })).json()).toEqual({
      count: 2,
      max_model_len: 2_048,
      tokens: [72, 105],
    });
    expect(await (await post('/tokenize', { prompt: 'Hi', return_token_strs: true })).json()).toMatchObject({
      token_strs: ['H', 'i'],
    });
    expect(await (await post('/detokenize', { tokens: [72, 105] })).json()).toEqual({ prompt: 'Hi' });
    expect(await (await worker.request('/tokenizer_info')).json()).toMatchObject({ eos_token: '<|end|>' });
  });

  test('validate requests and require a key', async () => {
    expect(await (await post('/tokenize', {})).json()).toMatchObject({ error: { param: 'prompt' } });
    expect(await (await post('/detokenize', { tokens: [-1] })).json()).toMatchObject({
      error: { param: 'tokens[0]' },
    });
    const many = new Array(262_145).fill(72);
    expect(await (await post('/detokenize', { tokens: many })).json()).toMatchObject({
      error: { param: 'tokens', code: 'array_above_max_length' },
    });
    expect((await fetch(`${worker.url}/tokenizer_info`)).status).toBe(401);
  });
});
