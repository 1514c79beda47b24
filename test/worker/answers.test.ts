import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { completionResponse } from '../../shared/completion-response.ts';
import type { GenerationEvent } from '../../shared/generation.ts';
import { DOCUMENTED_REQUESTS } from './documents.ts';
import { type FakeOrigin, MODEL, startFakeOrigin } from './support/fake-origin.ts';
import { acceptedFor, stepsFor, token } from './support/scripts.ts';
import { assemble, type Completion, chunksOf } from './support/sse.ts';
import { type RunningWorker, startWorker } from './support/worker.ts';

let origin: FakeOrigin;
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startFakeOrigin();
  worker = await startWorker(origin);
});
beforeEach(() => origin.reset());
afterAll(async () => {
  await worker?.stop();
  await origin?.stop();
});

async function complete(
  body: Record<string, unknown>,
  headers: Record<string, string> = {},
): Promise<Completion> {
  const response = await worker.post({ model: 'default', prompt: 'Hi', ...body }, { headers });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return completionResponse.parse(JSON.parse(text));
}

async function stream(body: Record<string, unknown>, headers: Record<string, string> = {}) {
  const response = await worker.post({ model: 'default', prompt: 'Hi', stream: true, ...body }, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('no-cache');
  return chunksOf(await response.text());
}

describe('H.1: requests of the documents are answered as they are printed', () => {
  test.each(Object.entries(DOCUMENTED_REQUESTS))('%s', async (_, body) => {
    const model = String(body.model);
    origin.models = [{ ...MODEL, id: model }];
    const response = await worker.post(body);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const answers = body.stream ? chunksOf(text) : [completionResponse.parse(JSON.parse(text))];
    expect(new Set(answers.map((answer) => answer.model))).toEqual(new Set([model]));
  });

  test('Pendra’s second address serves the same', async () => {
    const body = JSON.stringify(DOCUMENTED_REQUESTS['llama.cpp: basic']);
    const headers = { 'content-type': 'application/json', 'x-dialect': 'llamacpp' };
    const response = await worker.request('/api/v1/completions', { method: 'POST', body, headers });
    expect(response.status).toBe(200);
  });
});

describe('the plain answer', () => {
  test('has the documented shape, an opaque id and the name the caller sent', async () => {
    const answer = await complete({ model: MODEL.id, max_tokens: 2 });
    expect(answer).toMatchObject({
      object: 'text_completion',
      model: MODEL.id,
      choices: [{ index: 0, text: ' 0 two', logprobs: null, finish_reason: 'length', stop_reason: null }],
      usage: {
        prompt_tokens: 2,
        completion_tokens: 2,
        total_tokens: 4,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    });
    expect(answer.id).not.toBe((await complete({})).id);
    expect(Math.abs(answer.created - Date.now() / 1_000)).toBeLessThan(60);
    expect(answer.system_fingerprint).toMatch(/^fp_[0-9a-f]{8}$/);
  });

  test('D28: index is prompt · n + choice; prompts count once, completions all', async () => {
    const answer = await complete({ prompt: ['abc', [1, 2]], n: 2, max_tokens: 1 });
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, ' 0'],
      [1, ' 1'],
      [2, ' 2'],
      [3, ' 3'],
    ]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 });
  });

  test('D18: best_of returns the best n by mean logprob, bills all, and asks for scores', async () => {
    origin.script = (request, wire) => {
      const scores = [-9, -2, -4, -2];
      const finishes = scores.flatMap((score, choice): GenerationEvent[] => [
        { type: 'token', choice, text: `c${choice}`, completionTokens: 2 },
        {
          type: 'finish',
          choice,
          reason: 'stop',
          stopReason: null,
          completionTokens: choice === 0 ? 9 : 2,
          score,
        },
      ]);
      const usage = { promptTokens: 2, cachedTokens: 0, completionTokens: 15 };
      const timings = { queueMs: 0, promptMs: 0, generationMs: 0 };
      wire.send(...acceptedFor(request), ...finishes, { type: 'done', usage, timings });
      wire.end();
    };
    const answer = await complete({ best_of: 4, n: 3 });
    expect(origin.requests[0]).toMatchObject({ choices: 4, scores: true, stream: false });
    // Means: −1, −1, −2, −1; of equals the earlier candidate comes first.
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, 'c0'],
      [1, 'c1'],
      [2, 'c3'],
    ]);
    expect(answer.usage.completion_tokens).toBe(15);
  });

  test('a seed gives one fingerprint per build of the model', async () => {
    const before = (await complete({ seed: 1 })).system_fingerprint;
    expect((await complete({ seed: 2 })).system_fingerprint).toBe(before);
    origin.models = [{ ...MODEL, created: MODEL.created + 1 }];
    expect((await complete({ seed: 1 })).system_fingerprint).not.toBe(before);
  });

  test('token ids, prompt logprobs and timings come when asked for', async () => {
    const answer = await complete({
      prompt: 'ab',
      max_tokens: 2,
      return_token_ids: true,
      prompt_logprobs: 1,
      timings_per_token: true,
    });
    expect(answer.choices[0]).toMatchObject({
      text: ' 0 two',
      token_ids: [200, 201],
      prompt_token_ids: [97, 98],
      prompt_logprobs: [null, { '98': { logprob: -1.5, rank: 1, decoded_token: 'b' } }],
    });
    expect(answer.timings).toMatchObject({
      prompt_n: 2,
      prompt_ms: 2,
      predicted_n: 2,
      predicted_per_second: 500,
    });
  });
});

describe('echo', () => {
  test('H.2: with logprobs 1 and max_tokens 1 a prompt of k tokens has k + 1 entries', async () => {
    const [choice] = (await complete({ prompt: [5, 6, 7], echo: true, logprobs: 1, max_tokens: 1 })).choices;
    const logprobs = choice?.logprobs;
    expect(choice?.text).toBe('<5><6><7> 0');
    expect(logprobs?.tokens).toEqual(['<5>', '<6>', '<7>', ' 0']);
    expect(logprobs?.token_logprobs).toEqual([null, -1.5, -1.5, -0.1]);
    expect(logprobs?.top_logprobs).toEqual([null, { '<6>': -1.5 }, { '<7>': -1.5 }, { ' 0': -0.1 }]);
    expect(logprobs?.text_offset).toEqual([0, 3, 6, 9]);
  });

  test('the end token’s entry is there though its text is hidden', async () => {
    origin.script = (request, wire) => {
      const end = { ...token(1, '<|end|>', -0.25, 1), hidden: true };
      wire.send(
        ...acceptedFor(request),
        { type: 'token', choice: 0, text: '', completionTokens: 1, tokens: [end] },
        { type: 'finish', choice: 0, reason: 'stop', stopReason: null, completionTokens: 1 },
        {
          type: 'done',
          usage: { promptTokens: 2, cachedTokens: 0, completionTokens: 1 },
          timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
        },
      );
      wire.end();
    };
    const [choice] = (await complete({ logprobs: 1 })).choices;
    expect(choice?.text).toBe('');
    expect(choice?.logprobs).toMatchObject({
      tokens: ['<|end|>'],
      token_logprobs: [-0.25],
      text_offset: [0],
    });
  });

  test('echo_last repeats the last k prompt tokens only', async () => {
    const [choice] = (await complete({ prompt: [5, 6, 7], echo_last: 2, logprobs: 0, max_tokens: 1 }))
      .choices;
    expect(choice?.text).toBe('<6><7> 0');
    expect(choice?.logprobs).toMatchObject({ tokens: ['<6>', '<7>', ' 0'], text_offset: [0, 3, 6] });
  });
});

describe('H.14: max_tokens 0', () => {
  test('generates nothing; with echo it returns the prompt', async () => {
    expect((await complete({ max_tokens: 0 })).choices).toEqual([
      { index: 0, text: '', logprobs: null, finish_reason: 'length', stop_reason: null },
    ]);
    const answer = await complete({ max_tokens: 0, echo: true, logprobs: 0 });
    expect(answer.choices[0]).toMatchObject({
      text: 'Hi',
      logprobs: { tokens: ['H', 'i'] },
      finish_reason: 'length',
    });
    expect(answer.usage.completion_tokens).toBe(0);
  });

  test('streamed: one final chunk; with echo the prompt comes before it', async () => {
    const plain = await stream({ max_tokens: 0 });
    expect(plain.map(({ choices }) => choices[0])).toMatchObject([{ text: '', finish_reason: 'length' }]);
    const echoed = await stream({ max_tokens: 0, echo: true });
    expect(echoed.map(({ choices }) => choices[0])).toMatchObject([
      { text: 'Hi', finish_reason: null },
      { text: '', finish_reason: 'length' },
    ]);
  });
});

describe('H.4: stream and plain answer are the same', () => {
  const cases = [1, 3].flatMap((n) =>
    ['Hi', ['a', 'bc', 'def']].flatMap((prompt) =>
      [{}, { logprobs: 2 }, { echo: true, logprobs: 0 }].map((more) => ({
        n,
        prompt,
        max_tokens: 4,
        ...more,
      })),
    ),
  );
  test.each(cases.map((body) => [JSON.stringify(body), body] as const))('%s', async (_, body) => {
    const plain = await complete(body);
    expect(assemble(await stream(body))).toEqual(plain.choices);
  });
});

describe('the stream', () => {
  test('chunks share id, created, model and fingerprint; usage is absent unless asked for', async () => {
    const chunks = await stream({ n: 2, max_tokens: 3 });
    for (const field of ['id', 'created', 'model', 'system_fingerprint'] as const) {
      expect(new Set(chunks.map((chunk) => chunk[field])).size).toBe(1);
    }
    expect(chunks.every((chunk) => chunk.choices.length === 1 && !('usage' in chunk))).toBe(true);
  });

  test('include_usage: null in every chunk, then one chunk without choices', async () => {
    const chunks = await stream({ max_tokens: 2, n: 2, stream_options: { include_usage: true } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 4 } });
  });

  test('continuous_usage_stats: the count so far in every chunk', async () => {
    const stream_options = { include_usage: true, continuous_usage_stats: true };
    const chunks = await stream({ max_tokens: 3, stream_options });
    expect(chunks.map(({ usage }) => usage?.completion_tokens)).toEqual([1, 2, 3, 3, 3]);
  });

  test('tokens whose text is held back come with the text they make, or at the end', async () => {
    origin.script = (request, wire) => {
      const steps = stepsFor({ ...request, maxTokens: 0 });
      const held = (text: string, id: number, shown: string): GenerationEvent => ({
        type: 'token',
        choice: 0,
        text: shown,
        completionTokens: id,
        tokens: [token(id, text, -1, 0)],
      });
      wire.send(
        ...(steps[0] ?? []),
        held('a', 1, ''),
        held('b', 2, 'ab'),
        held('c', 3, ''),
        ...steps.slice(1).flat(),
      );
      wire.end();
    };
    const chunks = await stream({ logprobs: 0 });
    expect(chunks.map(({ choices }) => [choices[0]?.text, choices[0]?.logprobs?.tokens ?? null])).toEqual([
      ['ab', ['a', 'b']],
      ['', ['c']],
    ]);
  });
});

describe('what the origin is told', () => {
  test('caller, trace and limits come from the Worker, service fields from nobody', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await complete(
      { request_id: 'evil', priority: -5, tenantId: 'other' },
      { traceparent, 'x-request-id': 'mine-1' },
    );
    expect(origin.requests[0]).toMatchObject({ requestId: 'mine-1', model: MODEL.id, weight: 1, version: 1 });
    // The caller may use its id twice; the origin's account of the request has a name of its own.
    expect(origin.requests[0]?.account).toMatch(/^mine-1\.[0-9a-f]{16}$/);
    expect(origin.requests[0]?.tenantId).not.toBe('other');
    expect(origin.headers[0]?.traceparent).toBe(traceparent);
  });

  test('x-request-id: a sane one is kept, another replaced, every answer has one', async () => {
    const id = async (given: string) =>
      (await worker.request('/health', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
    expect(await id('abc-1.2:3')).toBe('abc-1.2:3');
    expect(await id('has spaces')).toMatch(/^req_[0-9a-f]{32}$/);
    expect(await id('x'.repeat(129))).toMatch(/^req_[0-9a-f]{32}$/);
  });
});

describe('models and health', () => {
  test('lists models and shows one whose id has slashes', async () => {
    const model = {
      id: MODEL.id,
      object: 'model',
      created: MODEL.created,
      owned_by: 'continuo',
      root: MODEL.id,
      max_model_len: 2_048,
      state: 'loaded',
    };
    expect(await (await worker.request('/v1/models')).json()).toEqual({ object: 'list', data: [model] });
    expect(await (await worker.request(`/v1/models/${MODEL.id}`)).json()).toEqual(model);
    expect(await (await worker.request(`/v1/models/${encodeURIComponent(MODEL.id)}`)).json()).toEqual(model);
    expect((await worker.request('/v1/models/org/none')).status).toBe(404);
  });

  test('a model is listed and asked for under its aliases too, and its id wins over an alias of another', async () => {
    const second = { ...MODEL, id: 'second', aliases: ['short'], state: 'unloaded' as const };
    origin.models = [{ ...MODEL, aliases: ['short', 'second', 'default'] }, second];
    const { data } = (await (await worker.request('/v1/models')).json()) as { data: object[] };
    expect(data).toMatchObject([
      { id: MODEL.id, root: MODEL.id, state: 'loaded' },
      { id: 'short', root: MODEL.id },
      { id: 'default', root: MODEL.id },
      { id: 'second', root: 'second', state: 'unloaded' },
    ]);
    expect(await (await worker.request('/v1/models/short')).json()).toEqual(data[1]);
    for (const model of ['short', 'default', 'second']) await complete({ model });
    expect(origin.requests.map(({ model }) => model)).toEqual([MODEL.id, MODEL.id, 'second']);
  });

  test("a model's own defaults stand in for what request and dialect leave open", async () => {
    origin.models = [{ ...MODEL, defaults: { temperature: 0.3, topK: 7, maxTokens: 3 } }];
    await complete({ max_tokens: undefined });
    await complete({ max_tokens: 5, temperature: 1, top_k: -1 });
    await complete({ max_tokens: undefined }, { 'x-dialect': 'llamacpp' });
    const sent = origin.requests.map(({ maxTokens, sampling: { temperature, topK, topP } }) => [
      maxTokens,
      temperature,
      topK,
      topP,
    ]);
    expect(sent).toEqual([
      [3, 0.3, 7, 1],
      [5, 1, 0, 1],
      [-1, 0.8, 40, 0.95],
    ]);
  });

  test('health needs no key and no origin; HEAD is GET without a body', async () => {
    const response = await fetch(`${worker.url}/health`);
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
    const head = await fetch(`${worker.url}/health`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});

describe('tokenizer routes', () => {
  const post = (path: string, body: unknown) =>
    worker.request(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
    });

  test('tokenize, detokenize and tokenizer_info answer as evaluation clients expect', async () => {
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

  test('they validate and need a key', async () => {
    expect(await (await post('/tokenize', {})).json()).toMatchObject({ error: { param: 'prompt' } });
    expect(await (await post('/detokenize', { tokens: [-1] })).json()).toMatchObject({
      error: { param: 'tokens[0]' },
    });
    expect((await fetch(`${worker.url}/tokenizer_info`)).status).toBe(401);
  });
});
