import { describe, expect, test } from 'vitest';
import { CAPABILITIES } from '../../../shared/capabilities.ts';
import { scoreResponse } from '../../../shared/score.ts';
import { admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { promptEvents } from '../support/scripts.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

type Fields = Readonly<Record<string, unknown>>;

const send = (fields: Fields, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
  worker.postTo(
    '/v1/score',
    { model: 'default', prompt: 'ab', continuations: ['c', 'dé'], ...fields },
    headers,
  );
const score = async (fields: Fields = {}) => {
  const response = await send(fields);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return scoreResponse.parse(JSON.parse(text));
};

describe('POST /v1/score', () => {
  test('returns the sum of logprobs, the tokens and the bytes of each continuation', async () => {
    const { id, ...answer } = await score();
    expect(id).toMatch(/^score-[0-9a-f]{32}$/);
    expect(answer).toMatchObject({
      object: 'list',
      model: 'default',
      data: [
        { index: 0, object: 'score', logprob: -1.5, is_greedy: true, token_count: 1, byte_count: 1 },
        { index: 1, object: 'score', logprob: -3, is_greedy: true, token_count: 2, byte_count: 3 },
      ],
      usage: { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 },
    });
    expect(answer.data[0]).not.toHaveProperty('tokens');
  });

  test('returns tokens and their logprobs on request; bytes of ids are those of their tokens', async () => {
    const [{ tokens, token_logprobs, byte_count } = {}] = (
      await score({ continuations: [[72, 105]], token_logprobs: true })
    ).data;
    expect([tokens, token_logprobs, byte_count]).toEqual([['<72>', '<105>'], [-1.5, -1.5], 9]);
  });

  test('calls a continuation greedy only if each token is the most likely one', async () => {
    origin.script = (request, wire) => {
      const events = promptEvents(request).map((event, index) => {
        if (event.type !== 'prompt' || index === 0) return event;
        const logprobs = event.logprobs?.map((token, at) =>
          at === 0 ? token : { ...token, topLogprobs: [[7, 'x', -0.5] as [number, string, number]] },
        );
        return { ...event, logprobs };
      });
      const usage = { promptTokens: 7, cachedTokens: 2, completionTokens: 0 };
      const timings = { queueMs: 0, promptMs: 0, generationMs: 0 };
      wire.send({ type: 'accepted', model: 'org/tiny', promptTokens: [3, 4] });
      wire.send(...events, { type: 'done', usage, timings });
      wire.end();
    };
    const { data, usage } = await score();
    expect(data.map(({ is_greedy }) => is_greedy)).toEqual([true, false]);
    expect(usage.prompt_tokens_details).toEqual({ cached_tokens: 2 });
  });

  test('sends the prompt once and generates nothing', async () => {
    await score({
      prompt: [1, 2],
      continuations: [[3], [4, 5]],
      prompt_cache_key: 'mine',
      cache_prompt: false,
    });
    await score({ tokenization: 'separate', add_special_tokens: false });
    expect(origin.requests[0]).toMatchObject({
      context: { prompt: [1, 2], tokenization: 'joint' },
      prompts: [[3], [4, 5]],
      maxTokens: 0,
      promptTopLogprobs: 1,
      contextOverflow: 'error',
      cachePrompt: false,
      cacheSalt: 'mine',
      stream: false,
    });
    expect(origin.requests[1]).toMatchObject({
      context: { prompt: 'ab', tokenization: 'separate' },
      addSpecialTokens: false,
      cachePrompt: true,
    });
  });

  test('takes an empty prompt in each of its forms', async () => {
    for (const prompt of ['', null, []]) await score({ prompt });
    expect(origin.requests.map(({ context }) => context?.prompt)).toEqual(['', '', '']);
  });

  test('fails with 502 if the origin returns no logprobs', async () => {
    origin.script = (_, wire) => {
      const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 0 };
      const timings = { queueMs: 0, promptMs: 0, generationMs: 0 };
      wire.send(
        { type: 'accepted', model: 'org/tiny', promptTokens: [1, 1] },
        { type: 'done', usage, timings },
      );
      wire.end();
    };
    const response = await send({});
    expect([response.status, await response.json()]).toMatchObject([
      502,
      { error: { code: 'upstream_error' } },
    ]);
  });

  test('fails with 502 at an origin that does not know the field', async () => {
    origin.capabilities = CAPABILITIES.filter((name) => name !== 'context');
    expect((await send({})).status).toBe(502);
  });
});

describe('a 400 names the field', () => {
  test.each([
    ['prompt', 'missing_required_parameter', { prompt: undefined }],
    ['prompt', 'invalid_type', { prompt: 7 }],
    ['prompt[1]', 'integer_below_min_value', { prompt: [1, -1] }],
    ['prompt[1]', 'invalid_type', { prompt: [1, 'a'] }],
    ['continuations', 'missing_required_parameter', { continuations: undefined }],
    ['continuations', 'invalid_type', { continuations: 'c' }],
    ['continuations', 'empty_array', { continuations: [] }],
    ['continuations', 'array_above_max_length', { continuations: new Array(257).fill('c') }],
    ['continuations[1]', 'empty_string', { continuations: ['c', ''] }],
    ['continuations[1]', 'empty_array', { continuations: [[1], []] }],
    ['continuations[1]', 'invalid_type', { continuations: ['c', [1]] }],
    ['continuations[0]', 'invalid_type', { continuations: [1, 2] }],
    ['continuations[0][1]', 'invalid_type', { continuations: [[1, 1.5]] }],
    ['tokenization', 'invalid_value', { tokenization: 'both' }],
    ['token_logprobs', 'invalid_type', { token_logprobs: 1 }],
  ])('%s: %s', async (param, code, fields) => {
    const response = await send(fields);
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param, code } }]);
    expect(origin.requests).toEqual([]);
  });

  test('256 continuations are accepted', async () => {
    expect((await score({ continuations: new Array(256).fill('c') })).data).toHaveLength(256);
  });

  test('refuses a million ids before they are parsed', async () => {
    const response = await send({ prompt: [...new Array(900_000).fill(7), -1] });
    expect(await response.json()).toMatchObject({
      error: { code: 'array_above_max_length', param: 'prompt' },
    });
  });

  test('of the origin is passed on, in the form of the dialect', async () => {
    origin.script = (_, wire) =>
      wire.refuse(400, {
        error: { code: 'context_length_exceeded', message: 'Too long.', param: 'continuations[1]' },
      });
    const response = await send({}, { 'x-dialect': 'vllm' });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'continuations[1]', code: 400 } },
    ]);
  });
});

describe('limits and usage are those of completions', () => {
  test('the prompt is reserved and billed for each continuation', async () => {
    const { key } = await tenantWithKey(worker, 'scorer', { tokens_per_minute: 10_000 });
    const authorization = `Bearer ${key}`;
    const fields = { prompt: 'x'.repeat(400), continuations: ['c', 'd', 'e'] };
    const first = await send(fields, { authorization });
    expect(first.headers.get('x-ratelimit-remaining-tokens')).toBe(String(10_000 - 3 * 401));
    // Before its tokens are known, a text counts a quarter of its characters.
    const small = await tenantWithKey(worker, 'small', { tokens_per_minute: 302 });
    const refused = await send(fields, { authorization: `Bearer ${small.key}` });
    expect([refused.status, origin.requests.length]).toEqual([429, 1]);
    const rows = await eventually(
      async () => (await admin(worker, 'GET', '/usage?tenant=scorer&group_by=model')).body.data[0],
      (found) => found !== undefined,
    );
    expect(rows).toMatchObject({ requests: 1, completed: 1, prompt_tokens: 3 * 401, completion_tokens: 0 });
  });

  test('a tenant may have fewer sequences per request', async () => {
    const { key } = await tenantWithKey(worker, 'narrow', { max_sequences: 1 });
    const response = await send({}, { authorization: `Bearer ${key}` });
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'continuations' } },
    ]);
  });

  test('an idempotency key runs a request once', async () => {
    const headers = { 'idempotency-key': 'score-once' };
    const first = await (await send({}, headers)).text();
    const again = await send({}, headers);
    expect([again.headers.get('idempotent-replayed'), await again.text()]).toEqual(['true', first]);
    expect(origin.requests).toHaveLength(1);
  });

  test('a key is required', async () => {
    expect((await send({}, { authorization: '' })).status).toBe(401);
  });
});
