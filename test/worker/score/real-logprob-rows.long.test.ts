import path from 'node:path';
import { expect, test } from 'vitest';
import { scoreResponse } from '../../../shared/score.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { forAllTests } from '../../support/for-tests.ts';
import { randomFrom } from '../../support/random.ts';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { startRealSystem, VOCABULARY } from '../support/real-origin.ts';

/** Rows of logprobs by the whole product, against a forward pass in doubles that shares no code with it. */

const TOLERANCE = 1e-3;
/** Bytes of a float32 row in base64. */
const ROW = 4 * Math.ceil((VOCABULARY * 4) / 3);

const system = forAllTests(() => startRealSystem(undefined, { ADMIN_KEY_SHA256 }));

const random = randomFrom(77);
/** Longer than two chunks of a prefill. */
const prompt = Array.from({ length: 75 }, () => Math.floor(random() * (VOCABULARY - 2)));
const FLOAT32 = { encoding: 'float32' };
const scored = { prompt, max_tokens: 4, ignore_eos: true, seed: 5, n: 2, echo: true, logprobs: 20 };
const shown = { ...scored, return_tokens_as_token_ids: true, return_token_ids: true };

const bytesOf = (base64: string) => Uint8Array.from(Buffer.from(base64, 'base64')).buffer;
const floats = (row: string | null) => (row === null ? null : [...new Float32Array(bytesOf(row))]);

test('rows of the whole vocabulary are the log-softmax of the model, for prompt and completion', async () => {
  const { choices } = await system.complete({ ...shown, logprobs_format: FLOAT32 });
  const reference = float64Llama.load(path.join(system.modelDirectory, 'model.onnx'));
  expect(choices).toHaveLength(2);
  for (const { logprobs, token_ids = [] } of choices) {
    const rows = (logprobs?.rows ?? []).map(floats);
    expect(rows).toHaveLength(prompt.length + 4);
    expect(rows[0]).toBeNull();
    expect(logprobs).not.toHaveProperty('row_ids');
    const expected = reference.forward([...prompt, ...token_ids]);
    for (const [index, row] of rows.slice(1).entries()) {
      const logits = expected[index]!;
      const top = Math.max(...logits);
      const normalizer = top + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - top), 0));
      const errors = row?.map((value, id) => Math.abs(value - (logits[id]! - normalizer))) ?? [];
      expect(errors).toHaveLength(VOCABULARY);
      expect(Math.max(...errors)).toBeLessThan(TOLERANCE);
      expect(row?.reduce((sum, value) => sum + Math.exp(value), 0)).toBeCloseTo(1, 5);
      for (const [name, value] of Object.entries(logprobs?.top_logprobs[index + 1] ?? {})) {
        expect(row?.[Number(name.replace('token_id:', ''))]).toBe(Math.fround(value));
      }
    }
  }
});

test('rows change nothing else, and are equal in streams, without a cache, and where the prompt was cached', async () => {
  const plain = (await system.complete(shown)).choices;
  const withRows = { ...shown, logprobs_format: FLOAT32 };
  const { choices } = await system.complete(withRows);
  const withoutRows = choices.map(({ logprobs, ...choice }) => {
    const { rows: _, ...rest } = { rows: [], ...logprobs };
    return { ...choice, logprobs: rest };
  });
  expect(withoutRows).toEqual(plain);
  const rows = choices.map(({ logprobs }) => logprobs?.rows);
  const uncached = await system.complete({ ...withRows, cache_prompt: false });
  expect(uncached.choices.map(({ logprobs }) => logprobs?.rows)).toEqual(rows);
  const chunks = (await system.stream(withRows)).flatMap((chunk) => chunk.choices);
  const streamed = [0, 1].map((choice) =>
    chunks.filter(({ index }) => index === choice).flatMap(({ logprobs }) => logprobs?.rows ?? []),
  );
  expect(streamed).toEqual(rows);
  const later = await system.complete({ ...withRows, prompt_logprob_start: 70 });
  expect(later.choices[0]?.logprobs?.rows).toEqual(rows[0]?.map((row, at) => (at > 70 ? row : null)));
});

test('top_p returns the ids of the most likely tokens with their values', async () => {
  const [whole] = (await system.complete({ ...shown, logprobs_format: FLOAT32 })).choices;
  const format = { encoding: 'float32', top_p: 0.5 };
  const [part] = (await system.complete({ ...shown, logprobs_format: format })).choices;
  const { rows = [], row_ids: ids = [] } = part?.logprobs ?? {};
  expect(ids).toHaveLength(prompt.length + 4);
  for (let at = 1; at < ids.length; at++) {
    const all = floats(whole?.logprobs?.rows?.[at] ?? null) ?? [];
    const listed = [...new Int32Array(bytesOf(ids[at] ?? ''))];
    const values = floats(rows[at] ?? null) ?? [];
    expect(values).toEqual(listed.map((id) => all[id]));
    const mass = values.reduce((sum, value) => sum + Math.exp(value), 0);
    expect(mass).toBeGreaterThan(0.5 - 1e-5);
    expect(mass - Math.exp(Math.min(...values))).toBeLessThan(0.5 + 1e-5);
  }
});

async function score(fields: object, key?: string) {
  return system.worker.postTo(
    '/v1/score',
    { model: 'default', ...fields },
    { ...(key && { authorization: `Bearer ${key}` }) },
  );
}

test('scores have the rows of their tokens', async () => {
  const continuations = [prompt.slice(60), prompt.slice(60, 64)];
  const fields = { prompt: prompt.slice(0, 60), continuations, logprobs_format: { encoding: 'float16' } };
  const { data } = scoreResponse.parse(await (await score(fields)).json());
  const { choices } = await system.complete({ ...shown, logprobs_format: { encoding: 'float16' } });
  const rows = choices[0]?.logprobs?.rows ?? [];
  expect(data.map((one) => one.rows)).toEqual([rows.slice(60, 75), rows.slice(60, 64)]);
});

test('the plan limits the bytes of rows, exactly for whole rows and as they come for others', async () => {
  const limits = { max_logprob_bytes: 3 * ROW };
  const { key } = await tenantWithKey(system.worker, 'few-rows', limits);
  const headers = { authorization: `Bearer ${key}` };
  const send = async (fields: object) => {
    const body = { model: 'default', prompt: [1, 2], ignore_eos: true, logprobs: 0, ...fields };
    const response = await system.worker.post(body, { headers });
    return [response.status, await response.json()];
  };
  const error = { param: 'logprobs_format', code: 'invalid_value' };
  const refused = [400, { error }];
  const whole = { logprobs_format: FLOAT32 };
  expect(await send({ max_tokens: 3, ...whole })).toMatchObject([200, {}]);
  expect(await send({ max_tokens: 4, ...whole })).toMatchObject(refused);
  expect(await send({ max_tokens: 2, echo: true, ...whole })).toMatchObject([200, {}]);
  expect(await send({ max_tokens: 3, echo: true, ...whole })).toMatchObject(refused);
  expect(await send({ max_tokens: 1, n: 4, temperature: 0, ...whole })).toMatchObject(refused);
  const most = { logprobs_format: { encoding: 'float32', top_p: 0.9 } };
  expect(await send({ max_tokens: 1, ...most })).toMatchObject([200, {}]);
  expect(await send({ max_tokens: 20, ...most })).toMatchObject(refused);
  const fields = { prompt: [1], continuations: [[1, 2, 3, 4]], ...whole };
  expect(await (await score(fields, key)).json()).toMatchObject({ error });
});
