import { describe, expect, test } from 'vitest';
import { completionResponse } from '../../../shared/completion-response.ts';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { DOCUMENTED_REQUESTS } from '../dialects/documents.ts';
import { complete } from '../support/completions.ts';
import { MODEL } from '../support/fake-origin.ts';
import { acceptedFor, doneFor, finishOf } from '../support/scripts.ts';
import { chunksOf } from '../support/sse.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

describe('the documented requests work as printed', () => {
  test.each(Object.entries(DOCUMENTED_REQUESTS))('%s', async (_, body) => {
    const model = String(body.model);
    origin.models = [{ ...MODEL, id: model }];
    const response = await worker.post(body);
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const answers = body.stream ? chunksOf(text) : [completionResponse.parse(JSON.parse(text))];
    expect(new Set(answers.map((answer) => answer.model))).toEqual(new Set([model]));
  });

  test.each(['/api/v1/completions', '/v1/fim/completions'])('%s serves the same answer', async (path) => {
    const body = JSON.stringify(DOCUMENTED_REQUESTS['llama.cpp: basic']);
    const headers = { 'content-type': 'application/json', 'x-dialect': 'llamacpp' };
    const response = await worker.request(path, { method: 'POST', body, headers });
    expect(response.status).toBe(200);
  });
});

describe('the plain answer', () => {
  test('has the documented shape, an opaque id and the model name of the request', async () => {
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

  test('index is prompt · n + choice; usage counts each prompt once and each choice', async () => {
    const answer = await complete(worker, { prompt: ['abc', [1, 2]], n: 2, max_tokens: 1 });
    expect(answer.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, ' 0'],
      [1, ' 1'],
      [2, ' 2'],
      [3, ' 3'],
    ]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 });
  });

  test('best_of returns the n best candidates by mean logprob and bills all candidates', async () => {
    origin.script = (request, wire) => {
      const scores = [-9, -2, -4, -2];
      const finishes = scores.flatMap((score, choice): GenerationEvent[] => [
        { type: 'token', choice, text: `c${choice}`, completionTokens: 2 },
        { ...finishOf(choice, 'stop', choice === 0 ? 9 : 2), score },
      ]);
      wire.send(...acceptedFor(request), ...finishes, doneFor(request, 15));
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

  test('system_fingerprint depends on the build of the model', async () => {
    const before = (await complete(worker, { seed: 1 })).system_fingerprint;
    expect((await complete(worker, { seed: 2 })).system_fingerprint).toBe(before);
    origin.models = [{ ...MODEL, created: MODEL.created + 1 }];
    expect((await complete(worker, { seed: 1 })).system_fingerprint).not.toBe(before);
    origin.models = [{ ...MODEL, fingerprint: 'fp_of_the_origin' }];
    expect((await complete(worker, {})).system_fingerprint).toBe('fp_of_the_origin');
  });

  test('token ids, prompt logprobs and timings are included on request', async () => {
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
