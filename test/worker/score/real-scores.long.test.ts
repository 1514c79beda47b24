import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { generativeScoringResponse, scoringResponse } from '../../../shared/label-scores.ts';
import { scoreResponse } from '../../../shared/score.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { forAllTests } from '../../support/for-tests.ts';
import { randomFrom } from '../../support/random.ts';
import { startRealSystem, VOCABULARY } from '../support/real-origin.ts';

/**
 * Scores by the whole product. Scores of texts are those of echoes, which scoring.test.ts compares with a
 * forward pass in doubles. What only scores have is compared with such a pass here.
 */

const TOLERANCE = 1e-3;

const system = forAllTests(startRealSystem);

const post = (route: string, fields: object): Promise<Response> =>
  system.worker.postTo(route, { model: 'default', ...fields });

async function score(fields: object) {
  const response = await post('/v1/score', { token_logprobs: true, ...fields });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return scoreResponse.parse(JSON.parse(text));
}

const random = randomFrom(2_400);
const ids = (length: number) => Array.from({ length }, () => Math.floor(random() * (VOCABULARY - 2)));
/** Beyond several prefill chunks, so that parts of it are reused. */
const prompt = ids(150);
const continuations = [...Array.from({ length: 11 }, (_, index) => ids(1 + 3 * index)), ids(1)];

describe('the scores of token ids', () => {
  let scored: Awaited<ReturnType<typeof score>>;
  beforeAll(async () => {
    // The greedy continuation of two tokens is among them.
    const { choices } = await system.complete({
      prompt,
      max_tokens: 2,
      temperature: 0,
      return_token_ids: true,
      ignore_eos: true,
    });
    continuations.push(choices[0]?.token_ids ?? []);
    scored = await score({ prompt, continuations });
  });

  test('are bit for bit those of the echoed prompts, one by one', async () => {
    for (const [index, continuation] of continuations.entries()) {
      const echoed = await system.complete({
        prompt: [...prompt, ...continuation],
        max_tokens: 0,
        echo: true,
        logprobs: 1,
        cache_prompt: false,
      });
      const all = echoed.choices[0]?.logprobs;
      const logprobs = all?.token_logprobs.slice(prompt.length) as number[];
      const tops = all?.top_logprobs.slice(prompt.length) ?? [];
      expect(scored.data[index]).toMatchObject({
        index,
        tokens: all?.tokens.slice(prompt.length),
        token_logprobs: logprobs,
        token_count: continuation.length,
        logprob: logprobs.reduce((sum, value) => sum + value, 0),
        is_greedy: tops.every((top, at) => logprobs[at] === Math.max(...Object.values(top ?? {}))),
      });
    }
    expect(scored.data.at(-1)?.is_greedy).toBe(true);
    expect(scored.data.filter(({ is_greedy }) => !is_greedy).length).toBeGreaterThan(8);
  });

  test('reuse the prompt: only its first copy is computed', () => {
    const { usage } = scored;
    const tokens = continuations.reduce((sum, { length }) => sum + prompt.length + length, 0);
    expect(usage).toMatchObject({ prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens });
    const chunk = 32;
    const reusable = prompt.length - 1 - ((prompt.length - 1) % chunk);
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    expect(cached).toBeGreaterThanOrEqual((continuations.length - 1) * reusable);
    expect(cached).toBeLessThanOrEqual(continuations.length * reusable);
  });
});

describe('prompt_logprob_start', () => {
  const scoring = { prompt, max_tokens: 2, temperature: 0, ignore_eos: true, echo: true, logprobs: 3 };

  test.each([1, 31, 32, 100, prompt.length - 2, prompt.length - 1, -1])(
    '%i leaves the logprobs after it as they are, and those before it out',
    async (start) => {
      const whole = (await system.complete(scoring)).choices[0];
      const [part] = (await system.complete({ ...scoring, prompt_logprob_start: start })).choices;
      const from = (start === -1 ? prompt.length - 1 : start) + 1;
      const without = <T>(values: readonly T[] = []) => values.map((value, at) => (at < from ? null : value));
      expect(part).toEqual({
        ...whole,
        logprobs: {
          ...whole?.logprobs,
          token_logprobs: without(whole?.logprobs?.token_logprobs),
          top_logprobs: without(whole?.logprobs?.top_logprobs),
        },
      });
    },
  );

  test('applies to prompt_logprobs, and reuses what is before it', async () => {
    const fields = { prompt: [...prompt, 7], max_tokens: 1, prompt_logprobs: 2, logprob_start_len: 130 };
    const { choices, usage } = await system.complete(fields);
    const scored = choices[0]?.prompt_logprobs ?? [];
    expect(scored.map((one) => one === null)).toEqual(scored.map((_, at) => at <= 130));
    expect(scored).toHaveLength(prompt.length + 1);
    expect(usage.prompt_tokens_details?.cached_tokens).toBe(128);
  });

  test('beyond the prompt is a 400 that names the field', async () => {
    const fields = { prompt: [1, 2], max_tokens: 1, prompt_logprobs: 0, prompt_logprob_start: 2 };
    const response = await post('/v1/completions', fields);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'prompt_logprob_start', code: 'invalid_value' } },
    ]);
  });
});

test('logprob_token_ids returns the logprobs of these ids, whatever their rank, and of the sampled token', async () => {
  const listed = ids(40);
  const fields = { prompt, max_tokens: 3, seed: 1, ignore_eos: true, echo: true, logprobs: 2 };
  const body = { ...fields, return_tokens_as_token_ids: true, return_token_ids: true };
  const { choices } = await system.complete({ ...body, logprob_token_ids: listed });
  const natural = (await system.complete(body)).choices[0]?.logprobs;
  const [{ logprobs, token_ids = [] } = { logprobs: null }] = choices;
  expect(logprobs?.token_logprobs).toEqual(natural?.token_logprobs);
  expect(logprobs?.top_logprobs.slice(0, prompt.length)).toEqual(
    natural?.top_logprobs.slice(0, prompt.length),
  );
  const reference = float64Llama.load(path.join(system.modelDirectory, 'model.onnx'));
  const rows = reference.forward([...prompt, ...token_ids]).slice(prompt.length - 1, -1);
  for (const [step, row] of rows.entries()) {
    const shown = logprobs?.top_logprobs[prompt.length + step] ?? {};
    const expected = new Set([...listed, token_ids[step]]);
    expect(new Set(Object.keys(shown).map((name) => Number(name.replace('token_id:', ''))))).toEqual(
      expected,
    );
    const top = Math.max(...row);
    const normalizer = top + Math.log(row.reduce((sum, value) => sum + Math.exp(value - top), 0));
    for (const [name, value] of Object.entries(shown)) {
      const logit = row[Number(name.replace('token_id:', ''))] ?? Number.NaN;
      expect(Math.abs(value - (logit - normalizer))).toBeLessThan(TOLERANCE);
    }
  }
});

describe('the scores of texts', () => {
  test('are those of the whole text after the tokens of the prompt alone', async () => {
    const start = 'once upon a time ';
    const texts = ['there was', 'a b', 'x'];
    const { data } = await score({ prompt: start, continuations: texts });
    for (const [index, continuation] of texts.entries()) {
      const echo = async (text: string) =>
        (await system.complete({ prompt: text, max_tokens: 0, echo: true, logprobs: 0 })).choices[0]
          ?.logprobs;
      const before = await echo(start.trimEnd());
      const whole = await echo(start + continuation);
      const from = before?.tokens.length ?? 0;
      expect(whole?.tokens.slice(0, from)).toEqual(before?.tokens);
      expect(data[index]).toMatchObject({
        tokens: whole?.tokens.slice(from),
        token_logprobs: whole?.token_logprobs.slice(from),
        byte_count: continuation.length,
      });
      expect(data[index]?.tokens?.[0]).toBe(' ');
    }
  });

  test('of the tokenization separate are those of the joined tokens', async () => {
    const tokens = async (text: string) =>
      ((await (await post('/tokenize', { prompt: text })).json()) as { tokens: number[] }).tokens;
    const [before, after] = [await tokens('ab '), await tokens('cd')];
    const texts = await score({ prompt: 'ab ', continuations: ['cd'], tokenization: 'separate' });
    const joined = await score({ prompt: before, continuations: [after] });
    expect(texts.data).toEqual(joined.data);
  });
});

describe('the probabilities of labels', () => {
  const items = [ids(3), ids(40), ids(1)];
  const some = ids(11);
  // vLLM counts a label once, SGLang as often as it is listed.
  const label_token_ids = [...some, some[3]!];

  test('equal a forward pass in doubles, with and without softmax, in the forms of vLLM and SGLang', async () => {
    const reference = float64Llama.load(path.join(system.modelDirectory, 'model.onnx'));
    const answer = async (route: string, fields: object) =>
      (await post(route, { query: prompt, items, label_token_ids, ...fields })).json();
    const [sglang, normalized, vllm] = [
      scoringResponse.parse(await answer('/v1/score', {})).scores,
      scoringResponse.parse(await answer('/v1/score', { apply_softmax: true })).scores,
      generativeScoringResponse.parse(await answer('/generative_scoring', { item_first: true })).data,
    ];
    const weightsAfter = (tokens: readonly number[], labels: readonly number[]): number[] => {
      const row = reference.forward(tokens).at(-1)!;
      const top = Math.max(...row);
      const total = row.reduce((sum, value) => sum + Math.exp(value - top), 0);
      return labels.map((id) => Math.exp(row[id]! - top) / total);
    };
    const share = (weights: readonly number[]) => weights.reduce((sum, weight) => sum + weight, 0);
    for (const [index, item] of items.entries()) {
      const weights = weightsAfter([...prompt, ...item], label_token_ids);
      for (const [label, weight] of weights.entries()) {
        expect(Math.abs((sglang[index]?.[label] ?? 2) - weight)).toBeLessThan(TOLERANCE);
        expect(Math.abs((normalized[index]?.[label] ?? 2) - weight / share(weights))).toBeLessThan(TOLERANCE);
      }
      const reversed = weightsAfter([...item, ...prompt], [...new Set(label_token_ids)]);
      expect(Math.abs((vllm[index]?.score ?? 2) - reversed[0]! / share(reversed))).toBeLessThan(TOLERANCE);
    }
  });

  test('reuse the query; what cannot be scored is a 400 that names the field', async () => {
    const { usage } = generativeScoringResponse.parse(
      await (await post('/generative_scoring', { query: prompt, items, label_token_ids: [1] })).json(),
    );
    expect(usage.prompt_tokens_details?.cached_tokens).toBeGreaterThanOrEqual(128 * items.length);
    expect(usage.completion_tokens).toBe(items.length);
    const fields = { query: prompt, items, label_token_ids: [1] };
    const refusal = async (changes: object) =>
      (await post('/generative_scoring', { ...fields, ...changes })).json();
    expect(await refusal({ label_token_ids: [1, VOCABULARY] })).toMatchObject({
      error: { param: 'label_token_ids', code: 'invalid_value' },
    });
    expect(await refusal({ items: [[1], [2, VOCABULARY]] })).toMatchObject({
      error: { param: 'items[1][1]', code: 'invalid_value' },
    });
    expect(await refusal({ items: [[1], ids(500)] })).toMatchObject({
      error: { param: 'items[1]', code: 'context_length_exceeded' },
    });
  });
});

test('ids beyond the vocabulary and prompts beyond the context are a 400 that names the field', async () => {
  const refusal = async (fields: object) => {
    const response = await post('/v1/score', fields);
    return ((await response.json()) as { error: unknown }).error;
  };
  expect(await refusal({ prompt: [1], continuations: [[1, VOCABULARY]] })).toMatchObject({
    param: 'continuations[0][1]',
    code: 'invalid_value',
  });
  expect(await refusal({ prompt: ids(500), continuations: [ids(2), ids(50)] })).toMatchObject({
    param: 'continuations[1]',
    code: 'context_length_exceeded',
  });
});
