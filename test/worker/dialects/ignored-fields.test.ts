import { expect, test } from 'vitest';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

const PATHS = [
  ['/v1/completions', { model: 'default', prompt: 'Hi', max_tokens: 1 }],
  ['/v1/completions', { model: 'default', prompt: 'Hi', max_tokens: 1, stream: true }],
  ['/completion', { prompt: 'Hi', n_predict: 1 }],
  ['/infill', { input_prefix: 'a', input_suffix: 'b', n_predict: 1 }],
  ['/tokenize', { prompt: 'Hi' }],
  ['/tokenize', { content: 'Hi' }],
  ['/detokenize', { tokens: [72] }],
] as const;

test.each(PATHS)('%s %j names the unknown fields in a header', async (path, body) => {
  const unknown = { post_sampling_probs: true, guided_jsn: {}, prediction: 'x', 'ä b': 1, adapter: null };
  const { status, headers } = await worker.postTo(path, { ...body, ...unknown });
  expect([status, headers.get('x-ignored-fields')]).toEqual([
    200,
    'post_sampling_probs, guided_jsn, prediction, %C3%A4%20b',
  ]);
  expect((await worker.postTo(path, body)).headers.get('x-ignored-fields')).toBeNull();
});

test('unknown fields within objects are named with their path, except in schemas', async () => {
  const response = await worker.postTo('/v1/completions', {
    model: 'default',
    prompt: 'Hi',
    stream: true,
    stream_options: { include_usage: true, usage: true },
    response_format: {
      type: 'json_schema',
      json_schema: { schema: { titel: 'x' }, strct: true },
      extra: null,
    },
  });
  expect(response.headers.get('x-ignored-fields')).toBe(
    'stream_options.usage, response_format.json_schema.strct',
  );
});

test('the header has a bounded length, and an ellipsis if names are left out', async () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`field-${index}`, index]));
  const response = await worker.postTo('/v1/completions', { model: 'default', prompt: 'Hi', ...many });
  const names = response.headers.get('x-ignored-fields')?.split(', ') ?? [];
  expect([names.length, names[0], names.at(-1)]).toEqual([33, 'field-0', '%E2%80%A6']);
});

test.each([
  ['structural_tag', { structures: [] }],
  ['grammar_string', 'root ::= "a"'],
  ['guided_decoding', { json: {}, regex: 'a' }],
  ['regex_pattern', 'a+'],
  ['format', 'json'],
  ['grammar_lazy', true],
  ['guided_json_object', true],
])('refuses the constraint field %s of another server by name, unless it is empty', async (field, value) => {
  const refused = await worker.postTo('/v1/completions', { model: 'default', prompt: 'Hi', [field]: value });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { code: 'unsupported_parameter', param: field } },
  ]);
  for (const off of ['', null, false, [], {}]) {
    const taken = await worker.postTo('/v1/completions', { model: 'default', prompt: 'Hi', [field]: off });
    expect(taken.status).toBe(200);
  }
  expect(origin.requests).toHaveLength(5);
});
