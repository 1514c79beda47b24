import { describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { completionResponse } from '../../../shared/completion-response.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { nativeResult } from '../../../shared/native-response.ts';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../support/scripts.ts';
import { nativePayloadsOf } from '../support/sse.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';

const { worker, origin } = workerForTests(
  { ADMIN_KEY_SHA256 },
  { log: new WorkerdLog(/"protocol_mismatch"/) },
);

type Fields = Readonly<Record<string, unknown>>;
type Result = z.infer<typeof nativeResult>;

async function completion(fields: Fields): Promise<Result> {
  const response = await worker.postTo('/completion', { prompt: 'Hi', n_predict: 3, ...fields });
  const body: unknown = await response.json();
  expect([response.status, body]).toEqual([200, expect.anything()]);
  return nativeResult.parse(body);
}

/** Returns the events of a stream, which has nothing else. */
async function stream(fields: Fields): Promise<Result[]> {
  const response = await worker.postTo('/completion', {
    prompt: 'Hi',
    n_predict: 3,
    stream: true,
    ...fields,
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const text = await response.text();
  expect(text).not.toContain('[DONE]');
  return nativeResult.array().parse(nativePayloadsOf(text));
}

describe('a plain native answer', () => {
  test('has all members', async () => {
    expect(await completion({})).toEqual({
      index: 0,
      content: ' 0 two three',
      tokens: [],
      stop: true,
      model: 'default',
      tokens_predicted: 3,
      tokens_evaluated: 2,
      generation_settings: expect.objectContaining({
        model: 'default',
        n_ctx: 2_048,
        n_predict: 3,
        temperature: 0.8,
        top_k: 40,
        stop: [],
      }),
      has_new_line: false,
      truncated: false,
      stop_type: 'limit',
      stopping_word: '',
      tokens_cached: 0,
      timings: expect.objectContaining({ prompt_n: 2, predicted_n: 3, prompt_ms: 2, predicted_ms: 4 }),
    });
  });

  test('needs no model, and shows the name of the request', async () => {
    expect((await completion({ model: 'whatever' })).model).toBe('whatever');
  });

  test('takes an empty model for none at every address of llama.cpp', async () => {
    expect((await completion({ model: '' })).model).toBe('default');
    const bodies = { '/infill': { input_prefix: 'a', input_suffix: 'b' }, '/tokenize': { content: 'a' } };
    for (const [path, body] of Object.entries(bodies)) {
      expect([path, (await worker.postTo(path, { ...body, model: '' })).status]).toEqual([path, 200]);
    }
    expect((await worker.postTo('/detokenize', { tokens: [72], model: '' })).status).toBe(200);
    expect((await worker.request('/props?model=')).status).toBe(200);
    expect((await worker.postTo('/v1/completions', { prompt: 'a', model: '' })).status).toBe(404);
  });

  test('shows why it ended', async () => {
    const endings = [
      { finish: { reason: 'stop', stopReason: null }, shown: ['eos', ''] },
      { finish: { reason: 'stop', stopReason: 'END' }, shown: ['word', 'END'] },
      { finish: { reason: 'stop', stopReason: 7 }, shown: ['eos', ''] },
      { finish: { reason: 'length', stopReason: null }, shown: ['limit', ''] },
    ] as const;
    for (const { finish, shown } of endings) {
      origin.script = (request, wire) => {
        wire.send(...acceptedFor(request), tokenEvent(1, 'a\n'));
        wire.send({ ...finishOf(0, 'stop', 1), ...finish }, doneFor(request, 1));
        wire.end();
      };
      const result = await completion({});
      expect([result.stop_type, result.stopping_word, result.has_new_line]).toEqual([...shown, true]);
    }
  });

  test('is truncated if the context is full', async () => {
    origin.script = (request, wire) => {
      wire.send({ type: 'accepted', model: request.model, promptTokens: [2_047] }, tokenEvent(1));
      const usage = { promptTokens: 2_047, cachedTokens: 2_000, completionTokens: 1 };
      wire.send(finishOf(0, 'length', 1), { ...doneFor(request, 1), usage });
      wire.end();
    };
    const { truncated, tokens_cached, timings } = await completion({ n_predict: -1 });
    expect([truncated, tokens_cached, timings?.cache_n, timings?.prompt_n]).toEqual([true, 2_000, 2_000, 47]);
  });

  test('is truncated if the origin has cut the prompt', async () => {
    origin.script = (request, wire) => {
      wire.send({ type: 'accepted', model: request.model, promptTokens: [9, 9], cutPrompts: [1] });
      wire.send(tokenEvent(1), finishOf(0, 'length', 1), finishOf(1, 'length', 1), doneFor(request, 2));
      wire.end();
    };
    const response = await worker.postTo('/completion', { prompt: ['a', 'b'], n_predict: 1 });
    const results = nativeResult.array().parse(await response.json());
    expect(results.map(({ truncated }) => truncated)).toEqual([false, true]);
  });

  test('has ids and probabilities if requested', async () => {
    const { tokens, completion_probabilities: all } = await completion({ n_probs: 2, return_tokens: true });
    expect(tokens).toEqual([200, 201, 202]);
    expect(all).toHaveLength(3);
    expect(all?.[1]).toEqual({
      id: 201,
      token: ' two',
      bytes: [32, 116, 119, 111],
      logprob: -0.2,
      top_logprobs: [
        { id: 201, token: ' two', bytes: [32, 116, 119, 111], logprob: -0.2 },
        { id: 1_001, token: ' alt1', bytes: expect.any(Array), logprob: -1.2 },
      ],
    });
    expect(await completion({ n_probs: 0 })).not.toHaveProperty('completion_probabilities');
  });

  test('has every id of logprob_token_ids, also more than n_probs and of one text', async () => {
    origin.script = (request, wire) => {
      const listed = (request.logprobTokenIds ?? []).map((id): [number, string, number] => [id, 'x', -id]);
      const logprobs = [{ id: 9, bytes: 'x', logprob: -9, topLogprobs: listed }];
      wire.send(...acceptedFor(request), { ...tokenEvent(1, 'x'), logprobs } as GenerationEvent);
      wire.send(finishOf(0, 'length', 1), doneFor(request, 1));
      wire.end();
    };
    const fields = { n_probs: 1, logprob_token_ids: [5, 6, 7] };
    const { completion_probabilities: all } = await completion(fields);
    expect(all?.[0]?.top_logprobs.map(({ id }) => id)).toEqual([5, 6, 7]);
    const response = await worker.post({ model: 'default', prompt: 'Hi', ...fields });
    const [choice] = completionResponse.parse(await response.json()).choices;
    expect(choice?.logprobs?.top_logprobs).toEqual([
      { 'token_id:5': -5, 'token_id:6': -6, 'token_id:7': -7, x: -9 },
    ]);
  });

  test('is a list if there are several choices', async () => {
    const response = await worker.postTo('/completion', { prompt: ['a', 'bcd'], n_cmpl: 2, n_predict: 2 });
    const results = nativeResult.array().parse(await response.json());
    expect(results.map(({ index, content, tokens_evaluated }) => [index, content, tokens_evaluated])).toEqual(
      [
        [0, ' 0 two', 1],
        [1, ' 1 two', 1],
        [2, ' 2 two', 3],
        [3, ' 3 two', 3],
      ],
    );
  });

  test('has only the members that response_fields names, under their paths', async () => {
    const response_fields = ['content', 'timings/predicted_n', 'generation_settings/n_ctx', '', 'no/such'];
    expect(await completion({ response_fields })).toEqual({
      content: ' 0 two three',
      'timings/predicted_n': 3,
      'generation_settings/n_ctx': 2_048,
    });
    expect(await completion({ response_fields: [''] })).toEqual({});
    expect(await completion({ response_fields: ['toString', '__proto__/x'] })).toEqual({});
  });
});

describe('a native stream', () => {
  test('sends parts, then one object without text, and no [DONE]', async () => {
    const events = await stream({});
    expect(events.slice(0, -1)).toEqual(
      [' 0', ' two', ' three'].map((content, step) => ({
        index: 0,
        content,
        tokens: [],
        stop: false,
        tokens_predicted: step + 1,
        tokens_evaluated: 2,
      })),
    );
    const { content, ...rest } = await completion({});
    expect(content).toBe(' 0 two three');
    expect(events.at(-1)).toEqual({
      ...rest,
      content: '',
      generation_settings: { ...rest.generation_settings, stream: true },
    });
  });

  test('sends ids and probabilities with their text', async () => {
    const events = await stream({ n_probs: 1, return_tokens: true });
    expect(events.map(({ tokens }) => tokens)).toEqual([[200], [201], [202], []]);
    expect(events.map((event) => event.completion_probabilities?.[0]?.token)).toEqual([
      ...[' 0', ' two', ' three', undefined],
    ]);
  });

  test('ends every choice', async () => {
    const events = await stream({ n_cmpl: 2, response_fields: ['index', 'stop', 'tokens_predicted'] });
    expect(events.slice(-2)).toEqual([
      { index: 0, stop: true, tokens_predicted: 3 },
      { index: 1, stop: true, tokens_predicted: 3 },
    ]);
  });

  test('that fails ends with one error event', async () => {
    origin.script = (request, wire) => {
      wire.send(...acceptedFor(request), tokenEvent(1));
      wire.end();
    };
    const response = await worker.postTo('/completion', { prompt: 'Hi', stream: true });
    const payloads = nativePayloadsOf(await response.text());
    expect(payloads).toHaveLength(2);
    expect(payloads[1]).toMatchObject({ error: { code: 502 } });
  });
});

describe('POST /infill', () => {
  const body = {
    input_prefix: 'before',
    input_suffix: '',
    input_extra: [{ filename: 'a.py', text: 'x = 1\n' }],
    prompt: 'mid',
    n_predict: 2,
  };

  test('sends all parts to the origin, and answers in the native shape', async () => {
    const response = await worker.postTo('/infill', body);
    expect(nativeResult.parse(await response.json())).toMatchObject({ content: ' 0 two', stop: true });
    expect(origin.requests[0]).toMatchObject({
      prompts: ['before'],
      suffix: '',
      infill: { middle: 'mid', files: [{ name: 'a.py', text: 'x = 1\n' }] },
    });
  });

  test('names its own fields in the errors of model and origin', async () => {
    origin.models = origin.models.map((model) => ({ ...model, infill: false }));
    const refused = await (await worker.postTo('/infill', body)).json();
    expect(refused).toMatchObject({ error: { code: 400, param: 'input_suffix' } });
    origin.reset();
    origin.script = (_, wire) => {
      const message = "Invalid 'prompt': it has no tokens.";
      wire.refuse(400, {
        error: { message, type: 'invalid_request_error', param: 'prompt', code: 'invalid_value' },
      });
    };
    expect(await (await worker.postTo('/infill', body)).json()).toMatchObject({
      error: { message: "Invalid 'input_prefix': it has no tokens.", param: 'input_prefix' },
    });
  });

  test('is refused by an origin that does not know its fields', async () => {
    origin.capabilities = (origin.capabilities ?? []).filter((name) => name !== 'infill');
    await worker.request('/v1/models');
    const response = await worker.postTo('/infill', body);
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(origin.requests).toEqual([]);
  });
});

test('native requests need a key, count as other completions, and can be repeated', async () => {
  const unauthorized = await worker.postTo(
    '/completion',
    { prompt: 'Hi' },
    { authorization: 'Bearer sk-none' },
  );
  expect(unauthorized.status).toBe(401);
  const { key } = await tenantWithKey(worker, 'editors', { requests_per_minute: 2 });
  const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'once' };
  const first = await worker.postTo('/completion', { prompt: 'Hi', n_predict: 1 }, headers);
  expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('1');
  const again = await worker.postTo('/completion', { prompt: 'Hi', n_predict: 1 }, headers);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(await again.text()).toBe(await first.text());
  const elsewhere = await worker.post({ prompt: 'Hi', n_predict: 1 }, { headers: { ...headers } });
  expect(elsewhere.status).toBe(409);
});

test.each(['/completion', '/infill', '/v1/score'])(
  '%s refuses to make its stream resumable',
  async (path) => {
    const resumed = await worker.postTo(
      path,
      { stream: true, continuations: ['a'] },
      { 'x-resumable': 'true' },
    );
    expect([resumed.status, await resumed.json()]).toMatchObject([
      400,
      { error: { code: 'unsupported_parameter', param: 'x-resumable' } },
    ]);
  },
);

test('GET /props shows the context length and the default settings of a model', async () => {
  const props = async (query = '') => (await worker.request(`/props${query}`)).json();
  const expected = {
    default_generation_settings: {
      n_ctx: 2_048,
      params: { n_ctx: 2_048, n_predict: -1, temperature: 0.8, repeat_penalty: 1.1, stream: false },
    },
    model_path: 'org/tiny',
    modalities: { vision: false, audio: false },
  };
  expect(await props()).toMatchObject({ ...expected, model_alias: 'default' });
  // As llama.vscode asks.
  expect(await props('?model=any&autoload=false')).toMatchObject({ ...expected, model_alias: 'any' });
  const stranger = await worker.request('/props', { headers: { authorization: 'Bearer sk-none' } });
  expect(stranger.status).toBe(401);
});
