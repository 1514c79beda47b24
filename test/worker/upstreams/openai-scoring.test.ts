import { describe, expect, test } from 'vitest';
import { scoreResponse } from '../../../shared/score.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker } = upstreamsForTests();

type Body = Readonly<Record<string, unknown>>;

const send = (fields: Body = {}): Promise<Response> =>
  worker.request('/v1/score', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'foreign', prompt: 'a b ', continuations: ['cd', 'é'], ...fields }),
  });
const refusal = async (fields: Body = {}) => {
  const response = await send(fields);
  return [response.status, ((await response.json()) as { error: unknown }).error];
};

/** One token per word with the space before it, as a server echoes a prompt. */
const wordsOf = (text: string): string[] => text.match(/ ?[^ ]+| +$/g) ?? [];
const echo = (tokens: readonly string[], index: number, text = tokens.join('')) => ({
  ...{ index, text, finish_reason: 'length' },
  logprobs: {
    tokens,
    token_logprobs: tokens.map((_, at) => (at === 0 ? null : -at)),
    top_logprobs: tokens.map((token, at) => (at === 0 ? null : { [index === 0 ? token : 'x']: -at })),
  },
});
type Echo = ReturnType<typeof echo>;

const answering = (choices: (prompts: readonly unknown[]) => readonly unknown[], usage?: object) => {
  openAi.script = ({ prompt }, response) => {
    const flat = typeof prompt === 'string' || (Array.isArray(prompt) && typeof prompt[0] === 'number');
    const prompts = flat ? [prompt] : (prompt as unknown[]);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices: choices(prompts), usage }));
  };
};
const echoing = (
  choice: (prompt: string, index: number) => Echo = (text, index) => echo(wordsOf(text), index),
) => answering((prompts) => prompts.map((prompt, index) => choice(String(prompt), index)));

describe('a server that echoes prompts', () => {
  test('gets the whole texts with echo and scores their ends', async () => {
    echoing();
    const answer = scoreResponse.parse(await (await send({ token_logprobs: true })).json());
    expect(openAi.bodies[0]).toMatchObject({
      prompt: ['a b cd', 'a b é'],
      echo: true,
      logprobs: 1,
      max_tokens: 0,
      temperature: 0,
      stream: false,
    });
    expect(answer.data).toMatchObject([
      { tokens: [' cd'], token_logprobs: [-2], logprob: -2, is_greedy: true, byte_count: 2 },
      { tokens: [' é'], token_logprobs: [-2], is_greedy: false, byte_count: 2 },
    ]);
    expect(answer.usage.completion_tokens).toBe(0);
  });

  test('counts a token that begins before the continuation to the prompt', async () => {
    echoing((_, index) => echo(['a', ' bc', 'd'], index, 'a bcd'));
    const answer = scoreResponse.parse(
      await (await send({ prompt: 'a b', continuations: ['cd'], token_logprobs: true })).json(),
    );
    expect(answer.data).toMatchObject([{ tokens: ['d'], token_logprobs: [-2] }]);
  });

  test('gets token ids as ids, and scores as many tokens as the continuation has', async () => {
    answering(() => [echo(['<s>', 'x', 'y', 'z'], 0)], { prompt_tokens: 4, completion_tokens: 0 });
    const answer = scoreResponse.parse(
      await (await send({ prompt: [1, 2], continuations: [[3, 4]], token_logprobs: true })).json(),
    );
    expect(openAi.bodies[0]).toMatchObject({ prompt: [1, 2, 3, 4] });
    expect(answer.data).toMatchObject([{ tokens: ['y', 'z'], token_logprobs: [-2, -3], byte_count: 2 }]);
    expect(answer.usage.prompt_tokens).toBe(4);
  });

  test('cannot encode texts separately or join texts and ids: a 400 names the field', async () => {
    expect(await refusal({ tokenization: 'separate' })).toMatchObject([400, { param: 'tokenization' }]);
    expect(await refusal({ continuations: [[3]] })).toMatchObject([400, { param: 'continuations' }]);
    echoing((_, index) => echo(['ab'], index));
    expect(await refusal({ prompt: 'a', continuations: ['b'] })).toMatchObject([
      400,
      { param: 'continuations[0]' },
    ]);
  });
});

describe('415 unsupported_endpoint', () => {
  const refused = [415, { code: 'unsupported_endpoint', param: 'model' }];

  test.each<[string, (text: string, index: number) => object]>([
    ['no logprobs', (text, index) => ({ ...echo(wordsOf(text), index), logprobs: null })],
    ['no echo', (_, index) => echo(['generated'], index)],
    ['more than the prompt', (text, index) => echo([...wordsOf(text), ' more'], index)],
  ])('for a server that answers with %s', async (_, choice) => {
    answering((prompts) => prompts.map((prompt, index) => choice(String(prompt), index)));
    expect(await refusal()).toMatchObject(refused);
  });

  test('for a server that refuses echo', async () => {
    openAi.script = (_, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({ error: { message: 'echo is not supported', type: 'invalid_request_error' } }),
      );
    };
    expect(await refusal()).toMatchObject(refused);
  });

  test('for the probabilities of labels, whose ids no server names', async () => {
    for (const route of ['/generative_scoring', '/v1/score']) {
      const body = { model: 'foreign', query: 'a', items: ['b', 'c'], label_token_ids: [1] };
      const headers = { 'content-type': 'application/json' };
      const response = await worker.request(route, { method: 'POST', headers, body: JSON.stringify(body) });
      expect([response.status, ((await response.json()) as { error: unknown }).error]).toMatchObject(refused);
    }
    expect(openAi.bodies).toEqual([]);
  });

  test('for llama.cpp, whose server has no echo, without a request to it', async () => {
    expect(await refusal({ model: 'local' })).toMatchObject(refused);
    expect(openAi.bodies).toEqual([]);
  });
});

describe('logprob_token_ids', () => {
  const complete = (fields: Body) =>
    worker.post({ prompt: 'Hi', max_tokens: 1, logprobs: 1, logprob_token_ids: [5, 6], ...fields });

  test('reaches a server that may know it', async () => {
    expect((await complete({ model: 'foreign' })).status).toBe(200);
    expect(openAi.bodies[0]).toMatchObject({ logprobs: 1, logprob_token_ids: [5, 6] });
  });

  test('is refused for a server without it', async () => {
    const response = await complete({ model: 'strict' });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { code: 'unsupported_parameter', param: 'logprob_token_ids' } },
    ]);
    expect(openAi.bodies).toEqual([]);
  });
});
