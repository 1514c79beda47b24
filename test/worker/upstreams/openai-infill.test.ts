import { describe, expect, test } from 'vitest';
import { nativePayloadsOf } from '../support/sse.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker } = upstreamsForTests();

const BODY = {
  model: 'local-coder',
  input_prefix: 'def add(a, b):\n',
  input_suffix: '\nprint(1)\n',
  input_extra: [{ filename: 'a.py', text: 'x = 1' }],
  prompt: '    return ',
  n_predict: 8,
  t_max_prompt_ms: 500,
  t_max_predict_ms: 250,
  response_fields: ['content', 'tokens_evaluated', 'tokens_cached', 'timings/predicted_n', 'stop_type'],
};

const infill = (fields: Readonly<Record<string, unknown>> = {}) =>
  worker.postTo('/infill', { ...BODY, ...fields });

describe('an infill for an OpenAI-compatible server', () => {
  test('is a completion with prompt and suffix, with other files first and the middle last', async () => {
    const response = await infill();
    expect(await response.json()).toEqual({
      content: 'Hello there',
      tokens_evaluated: 7,
      tokens_cached: 3,
      'timings/predicted_n': 2,
      stop_type: 'limit',
    });
    const [body] = openAi.bodies;
    expect(body).toMatchObject({
      prompt: 'x = 1\ndef add(a, b):\n    return ',
      suffix: '\nprint(1)\n',
      max_tokens: 8,
      t_max_predict_ms: 250,
    });
    for (const name of ['input_prefix', 'input_suffix', 'input_extra', 'response_fields']) {
      expect(body).not.toHaveProperty(name);
    }
  });

  test('has no suffix if it is empty, and no time limits if the server knows none', async () => {
    expect((await infill({ model: 'strict-coder', input_suffix: '' })).status).toBe(200);
    expect(openAi.bodies[0]).toMatchObject({ prompt: 'x = 1\ndef add(a, b):\n    return ' });
    for (const name of ['suffix', 't_max_predict_ms', 't_max_prompt_ms']) {
      expect(openAi.bodies[0]).not.toHaveProperty(name);
    }
  });

  test('is streamed in the native shape', async () => {
    const text = await (await infill({ stream: true, response_fields: ['content', 'stop'] })).text();
    expect(nativePayloadsOf(text)).toMatchObject([
      { content: 'Hello', stop: false },
      { content: ' there', stop: false },
      { content: '', stop: true },
    ]);
  });

  test('is a 400 for a model that is not configured for it, and a 415 for one without raw completions', async () => {
    expect(await (await infill({ model: 'local' })).json()).toMatchObject({
      error: { code: 400, param: 'input_suffix' },
    });
    const chatOnly = await worker.postTo('/completion', { model: 'chat-only', prompt: 'Hi' });
    expect(chatOnly.status).toBe(415);
    expect(openAi.bodies).toEqual([]);
  });
});
