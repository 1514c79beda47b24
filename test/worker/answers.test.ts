import { describe, expect, test } from 'vitest';
import { completionResponse } from '../../shared/completion-response.ts';
import type { GenerationEvent } from '../../shared/generation.ts';
import { DOCUMENTED_REQUESTS } from './documents.ts';
import { complete, stream } from './support/completions.ts';
import { MODEL } from './support/fake-origin.ts';
import { acceptedFor, stepsFor, token } from './support/scripts.ts';
import { assemble, chunksOf } from './support/sse.ts';
import { workerForTests } from './support/worker-for-tests.ts';

const { worker, origin } = workerForTests();

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
    const answer = await complete(worker, { model: MODEL.id, max_tokens: 2 });
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
    expect(answer.id).not.toBe((await complete(worker, {})).id);
    expect(Math.abs(answer.created - Date.now() / 1_000)).toBeLessThan(60);
    expect(answer.system_fingerprint).toMatch(/^fp_[0-9a-f]{8}$/);
  });

  test('D28: index is prompt · n + choice; prompts count once, completions all', async () => {
    const answer = await complete(worker, { prompt: ['abc', [1, 2]], n: 2, max_tokens: 1 });
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
    const answer = await complete(worker, { best_of: 4, n: 3 });
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
    const before = (await complete(worker, { seed: 1 })).system_fingerprint;
    expect((await complete(worker, { seed: 2 })).system_fingerprint).toBe(before);
    origin.models = [{ ...MODEL, created: MODEL.created + 1 }];
    expect((await complete(worker, { seed: 1 })).system_fingerprint).not.toBe(before);
  });

  test('token ids, prompt logprobs and timings come when asked for', async () => {
    const answer = await complete(worker, {
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
    const [choice] = (await complete(worker, { prompt: [5, 6, 7], echo: true, logprobs: 1, max_tokens: 1 }))
      .choices;
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
    const [choice] = (await complete(worker, { logprobs: 1 })).choices;
    expect(choice?.text).toBe('');
    expect(choice?.logprobs).toMatchObject({
      tokens: ['<|end|>'],
      token_logprobs: [-0.25],
      text_offset: [0],
    });
  });

  test('echo_last repeats the last k prompt tokens only', async () => {
    const [choice] = (await complete(worker, { prompt: [5, 6, 7], echo_last: 2, logprobs: 0, max_tokens: 1 }))
      .choices;
    expect(choice?.text).toBe('<6><7> 0');
    expect(choice?.logprobs).toMatchObject({ tokens: ['<6>', '<7>', ' 0'], text_offset: [0, 3, 6] });
  });
});

describe('H.14: max_tokens 0', () => {
  test('generates nothing; with echo it returns the prompt', async () => {
    expect((await complete(worker, { max_tokens: 0 })).choices).toEqual([
      { index: 0, text: '', logprobs: null, finish_reason: 'length', stop_reason: null },
    ]);
    const answer = await complete(worker, { max_tokens: 0, echo: true, logprobs: 0 });
    expect(answer.choices[0]).toMatchObject({
      text: 'Hi',
      logprobs: { tokens: ['H', 'i'] },
      finish_reason: 'length',
    });
    expect(answer.usage.completion_tokens).toBe(0);
  });

  test('streamed: one final chunk; with echo the prompt comes before it', async () => {
    const plain = await stream(worker, { max_tokens: 0 });
    expect(plain.map(({ choices }) => choices[0])).toMatchObject([{ text: '', finish_reason: 'length' }]);
    const echoed = await stream(worker, { max_tokens: 0, echo: true });
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
    const plain = await complete(worker, body);
    expect(assemble(await stream(worker, body))).toEqual(plain.choices);
  });
});

describe('the stream', () => {
  test('chunks share id, created, model and fingerprint; usage is absent unless asked for', async () => {
    const chunks = await stream(worker, { n: 2, max_tokens: 3 });
    for (const field of ['id', 'created', 'model', 'system_fingerprint'] as const) {
      expect(new Set(chunks.map((chunk) => chunk[field])).size).toBe(1);
    }
    expect(chunks.every((chunk) => chunk.choices.length === 1 && !('usage' in chunk))).toBe(true);
  });

  test('include_usage: null in every chunk, then one chunk without choices', async () => {
    const chunks = await stream(worker, { max_tokens: 2, n: 2, stream_options: { include_usage: true } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 4 } });
  });

  test('continuous_usage_stats: the count so far in every chunk', async () => {
    const stream_options = { include_usage: true, continuous_usage_stats: true };
    const chunks = await stream(worker, { max_tokens: 3, stream_options });
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
    const chunks = await stream(worker, { logprobs: 0 });
    expect(chunks.map(({ choices }) => [choices[0]?.text, choices[0]?.logprobs?.tokens ?? null])).toEqual([
      ['ab', ['a', 'b']],
      ['', ['c']],
    ]);
  });
});
