import { describe, expect, test } from 'vitest';
import { errorResponseBody } from '../../../shared/completion-response.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

/** One rule for half of a surrogate pair: a 400 in every field, because UTF-8 cannot encode it. */

const { worker, origin } = sharedWorker();

const BODIES: readonly (readonly [path: string, fields: object])[] = [
  ['/v1/completions', { model: 'default', prompt: 'x' }],
  ['/completion', { prompt: 'x' }],
  ['/infill', { input_prefix: 'x', input_suffix: 'y' }],
  ['/v1/score', { model: 'default', prompt: 'x', continuations: ['y'] }],
  ['/tokenize', { prompt: 'x' }],
];

describe.each(['zz\ud800', '\udc00 a', 'a\ude00\ud83d', '\ud83d\ud83d\ude00'])('%j', (text) => {
  test.each(BODIES)('in any field of %s is refused by its name', async (path, fields) => {
    const [name] = Object.keys(fields).slice(-1) as [string];
    const places = { [name]: [text], user: text, stop: ['a', text], unknown: { a: [{ b: text }] } };
    for (const [param, value] of Object.entries(places)) {
      const response = await worker.postTo(path, { ...fields, [param]: value });
      const { error } = errorResponseBody.parse(await response.json());
      expect([response.status, error.param]).toEqual([400, param]);
      expect(error.message).toContain('half of a surrogate pair');
    }
    expect(origin.requests).toEqual([]);
  });

  test('is refused as the name of a field and of a member', async () => {
    for (const body of [{ [text]: 1 }, { json_schema: { properties: { [text]: {} } } }]) {
      const response = await worker.post({ model: 'default', prompt: 'x', ...body });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain('half of a surrogate pair');
    }
  });
});

test('takes whole pairs, as characters and as escapes, and escapes in a pattern', async () => {
  const body = String.raw`{"model":"default","prompt":"\ud83d\uDE00 😀","regex":"\\ud83d\\ude00"}`;
  expect((await worker.post(body)).status).toBe(200);
  expect(origin.requests[0]).toMatchObject({
    prompts: ['😀 😀'],
    constraint: { type: 'regex', value: String.raw`\ud83d\ude00` },
  });
});

test('the error of a number with many digits shows few of them', async () => {
  const response = await worker.post('{"model":"default","prompt":"x","seed":1e308}');
  const { error } = errorResponseBody.parse(await response.json());
  expect(error).toMatchObject({ code: 'integer_above_max_value', param: 'seed' });
  expect(error.message).toContain('but got 1e+308 instead');
  const digits = await worker.post(`{"model":"default","prompt":"x","seed":-${'9'.repeat(300)}}`);
  expect(await digits.text()).toContain('but got -1e+300 instead');
});
