import { describe, expect, test } from 'vitest';
import { sharedSystem } from '../support/shared-system.ts';
import { DOCUMENTED_REQUESTS } from '../worker/dialects/documents.ts';
import { payloadsOf } from '../worker/support/sse.ts';

/** Sends every example request of the five compatible APIs' documents, with the model's name replaced. */

const system = sharedSystem();

const model = 'continuo-mini';

/** Replaces the model's name in a documented request. */
const printed = (name: string): Readonly<Record<string, unknown>> => {
  const request = DOCUMENTED_REQUESTS[name];
  if (request === undefined) throw new Error(`no document prints '${name}'`);
  return { ...request, model };
};

const post = (fields: object, path = '/v1/completions', headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${system.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, ...fields }),
  });

interface Completion {
  readonly object: string;
  readonly choices: {
    text: string;
    index: number;
    finish_reason: string;
    logprobs: null | Record<'tokens' | 'token_logprobs' | 'top_logprobs' | 'text_offset', unknown[]>;
  }[];
  readonly usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

async function complete(fields: object, path?: string): Promise<Completion> {
  const response = await post(fields, path);
  const body = (await response.json()) as Completion;
  expect([response.status, body]).toEqual([200, expect.objectContaining({ object: 'text_completion' })]);
  expect(body.usage.total_tokens).toBe(body.usage.prompt_tokens + body.usage.completion_tokens);
  for (const { finish_reason } of body.choices) expect(['stop', 'length']).toContain(finish_reason);
  return body;
}

async function stream(fields: object): Promise<{ text: string; chunks: Completion[] }> {
  const response = await post({ ...fields, stream: true });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const chunks = payloadsOf(await response.text()) as Completion[];
  for (const chunk of chunks) expect(chunk.object).toBe('text_completion');
  return { chunks, text: chunks.map(({ choices }) => choices[0]?.text ?? '').join('') };
}

describe('Pendra’s examples', () => {
  const example = printed('Pendra: completion of code');

  test('the curl example, at both addresses', async () => {
    for (const path of ['/v1/completions', '/api/v1/completions']) {
      const { choices } = await complete(example, path);
      expect(choices[0]?.text).not.toContain('\n\n');
    }
  });

  test('streams chunks terminated by [DONE]', async () => {
    // Greedy, because a sampled text may begin with the stop string and be empty.
    expect((await stream({ ...example, temperature: 0 })).chunks.length).toBeGreaterThan(1);
  });
});

describe('mistral.rs’s examples', () => {
  const example = printed('mistral.rs: every field');

  test('the curl example with its nulls', async () => {
    // The grammar allows only the word that is also the stop string, so the text is empty.
    expect((await stream(example)).text).toBe('');
  });

  test('without the stop, the text matches the grammar', async () => {
    expect((await stream({ ...example, stop: null })).text).toBe('example');
  });
});

describe('Fireworks’ examples', () => {
  test('token-id prompts, ignore_eos and the context behaviour', async () => {
    const { choices, usage } = await complete({
      prompt: [[300, 301, 302], [303]],
      max_tokens: 8,
      ignore_eos: true,
      context_length_exceeded_behavior: 'truncate',
      mirostat_target: 1.5,
      mirostat_lr: 0.1,
      images: [],
    });
    expect(choices.map(({ index }) => index)).toEqual([0, 1]);
    expect(usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 16 });
  });

  test('JSON mode gives JSON', async () => {
    const { choices } = await complete({
      prompt: 'A JSON object:',
      max_tokens: 400,
      temperature: 0,
      response_format: { type: 'json_object' },
    });
    const [choice] = choices;
    if (choice?.finish_reason === 'stop') expect(typeof JSON.parse(choice.text)).toBe('object');
    else expect(choice?.text.trimStart()).toMatch(/^\{/);
  });
});

describe('llama.cpp’s examples', () => {
  test('the first example', async () => {
    await complete(printed('llama.cpp: basic'));
  });

  test('log probabilities', async () => {
    const { choices } = await complete(printed('llama.cpp: log probabilities'));
    const { logprobs } = choices[0] ?? {};
    expect(Object.keys(logprobs ?? {}).sort()).toEqual([
      'text_offset',
      'token_logprobs',
      'tokens',
      'top_logprobs',
    ]);
    expect(logprobs?.text_offset[0]).toBe(0);
  });

  test('batch completions', async () => {
    const { choices } = await complete(printed('llama.cpp: batch'));
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
  });

  test('mixed tokens and strings are one prompt', async () => {
    expect((await complete({ prompt: [312, 334, 'string', 356], max_tokens: 2 })).choices).toHaveLength(1);
  });

  test('code infilling', async () => {
    const { choices } = await complete(printed('llama.cpp: infill'));
    expect(choices).toHaveLength(1);
  });

  test('grammar-constrained generation', async () => {
    const { choices } = await complete(printed('llama.cpp: grammar'));
    expect(choices[0]?.text).toMatch(/^[0-9+\-*/()]+$/);
  });

  test('JSON schema constraint', async () => {
    const { choices } = await complete(printed('llama.cpp: JSON schema'));
    const [choice] = choices;
    if (choice?.finish_reason === 'stop') expect(JSON.parse(choice.text)).toHaveProperty('price');
    else expect(choice?.text).toMatch(/^\s*\{/);
  });

  test('mirostat', async () => {
    await complete(printed('llama.cpp: Mirostat'));
  });

  test('the error of a request without a prompt', async () => {
    const response = await post({}, '/v1/completions', { 'x-dialect': 'llamacpp' });
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect([response.status, error.type, error.code]).toEqual([400, 'invalid_request_error', 400]);
    expect(error.message).toContain("'prompt'");
  });
});

describe('ai&’s examples', () => {
  test('the first example', async () => {
    await complete(printed('ai&: haiku'));
  });

  test('the streaming example', async () => {
    // Greedy, because a sampled text may end with its first token.
    expect((await stream({ ...printed('ai&: stream'), temperature: 0 })).chunks.length).toBeGreaterThan(1);
  });

  test('the same with usage in the last event', async () => {
    const { chunks } = await stream({ ...printed('ai&: usage in the stream'), max_tokens: 50 });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } });
  });

  test('best_of cannot be used with stream', async () => {
    const response = await post({ prompt: 'x', best_of: 2, stream: true });
    expect(response.status).toBe(400);
  });
});
