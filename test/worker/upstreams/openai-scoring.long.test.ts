import { describe, expect, test } from 'vitest';
import { scoreResponse } from '../../../shared/score.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker, another } = upstreamsForTests();

type Body = Readonly<Record<string, unknown>>;

const send = (fields: Body = {}): Promise<Response> =>
  worker.postTo('/v1/score', { model: 'foreign', prompt: 'a b ', continuations: ['cd', 'é'], ...fields });
const refusal = async (fields: Body = {}) => {
  const response = await send(fields);
  return [response.status, ((await response.json()) as { error: unknown }).error];
};

/** One token per word with the space before it, as a server echoes a prompt. */
const wordsOf = (text: string): string[] => text.match(/ ?[^ ]+| +$/g) ?? [];
const echo = (tokens: readonly string[], index: number, text = tokens.join('')) => ({
  index,
  text,
  finish_reason: 'length',
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
      const response = await worker.postTo(route, body, headers);
      expect([response.status, ((await response.json()) as { error: unknown }).error]).toMatchObject(refused);
    }
    expect(openAi.bodies).toEqual([]);
  });

  test('for a server that is configured as one that cannot, without a request to it', async () => {
    expect(await refusal({ model: 'unscored' })).toMatchObject(refused);
    const response = await worker.post({ model: 'unscored', prompt: 'a', echo: true, logprobs: 1 });
    expect([response.status, ((await response.json()) as { error: unknown }).error]).toMatchObject(refused);
    expect(openAi.bodies).toEqual([]);
  });

  test('for a server whose answer lacked the scores, without a second request', async () => {
    for (let count = 0; count < 3; count += 1) {
      expect(await refusal({ model: 'local', continuations: ['c'] })).toMatchObject(refused);
    }
    expect(openAi.bodies).toHaveLength(1);
  });
});

describe('a completion with the logprobs of its prompt', () => {
  // It has not learned yet what the server cannot do.
  const fresh = another({});
  const complete = async (fields: Body) => {
    const response = await fresh.post({ model: 'foreign', temperature: 0, ...fields });
    return [response.status, await response.json()] as const;
  };

  test('with echo has what the server echoes, for texts and for token ids', async () => {
    echoing((text, index) => echo([...wordsOf(text), ' new'], index));
    const [status, body] = await complete({
      prompt: ['a b', 'c d e'],
      echo: true,
      logprobs: 1,
      max_tokens: 1,
    });
    expect(openAi.bodies[0]).toMatchObject({
      prompt: ['a b', 'c d e'],
      echo: true,
      logprobs: 1,
      max_tokens: 1,
    });
    expect([status, body]).toMatchObject([
      200,
      {
        choices: [
          {
            text: 'a b new',
            logprobs: { tokens: ['a', ' b', ' new'], token_logprobs: [null, -1, -2], text_offset: [0, 1, 3] },
          },
          { text: 'c d e new', logprobs: { token_logprobs: [null, -1, -2, -3] } },
        ],
      },
    ]);
    answering(() => [echo(['x', 'y', 'z'], 0)], { prompt_tokens: 2, completion_tokens: 1 });
    const ids = await complete({ prompt: [5, 6], echo: true, logprobs: 1, max_tokens: 1 });
    expect(openAi.bodies[1]).toMatchObject({ prompt: [5, 6], echo: true });
    expect(ids).toMatchObject([
      200,
      { choices: [{ text: 'xyz' }], usage: { prompt_tokens: 2, completion_tokens: 1 } },
    ]);
  });

  test('in prompt_logprobs keeps the own token first, and its rank', async () => {
    const entry = (id: number, logprob: number, rank: number) =>
      `"${id}": {"logprob": ${logprob}, "rank": ${rank}, "decoded_token": "t${id}"}`;
    openAi.script = (_, response) => {
      const positions = `[null, {${entry(9, -3, 7)}, ${entry(2, -0.5, 1)}}, {${entry(5, -0.1, 1)}}]`;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        `{"choices": [{"index": 0, "text": "x", "finish_reason": "stop", "prompt_logprobs": ${positions}}]}`,
      );
    };
    const sent = { model: 'foreign', prompt: 'a b c', max_tokens: 1, prompt_logprobs: 1 };
    const text = await (await fresh.post(sent)).text();
    expect(openAi.bodies[0]).toMatchObject({ prompt_logprobs: 1 });
    expect(text).toContain(
      '"prompt_logprobs":[null,{"9":{"logprob":-3,"rank":7,"decoded_token":"t9"},"2":{"logprob":-0.5,"rank":1,"decoded_token":"t2"}},{"5":{"logprob":-0.1,"rank":1,"decoded_token":"t5"}}]',
    );
  });

  test.each([
    ['echo_last', { echo_last: 2 }],
    ['prompt_logprob_start', { prompt_logprobs: 1, prompt_logprob_start: 3 }],
    ['prompt_logprobs', { echo: true, logprobs: 1, prompt_logprobs: 1 }],
    ['best_of', { echo: true, logprobs: 1, best_of: 2 }],
  ])('is a 400 with %s', async (param, fields) => {
    const refused = [400, { error: { code: 'unsupported_parameter', param } }];
    expect(await complete({ prompt: 'a', ...fields })).toMatchObject(refused);
    expect(openAi.bodies).toEqual([]);
  });

  test('is a 415 if the server ignores the request for it', async () => {
    answering(() =>
      [echo(['new'], 0)].map((choice) => ({
        ...choice,
        logprobs: { ...choice.logprobs, token_logprobs: [-1] },
      })),
    );
    expect(await complete({ prompt: 'a b', echo: true, logprobs: 1 })).toMatchObject([
      415,
      { error: { param: 'model' } },
    ]);
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
