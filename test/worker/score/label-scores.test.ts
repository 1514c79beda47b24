import { describe, expect, test } from 'vitest';
import type { GenerationEvent } from '../../../shared/generation.ts';
import { generativeScoringResponse, scoringResponse } from '../../../shared/label-scores.ts';
import { admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { acceptedFor, doneFor, finishOf, token } from '../support/scripts.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

type Fields = Readonly<Record<string, unknown>>;
const BODY = { model: 'default', query: 'q ', items: ['a', 'bc'], label_token_ids: [5, 9, 5] };

const send = (
  route: string,
  fields: Fields = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> => worker.postTo(route, { ...BODY, ...fields }, headers);
async function answer(route: string, fields: Fields = {}): Promise<unknown> {
  const response = await send(route, fields);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return JSON.parse(text);
}
const generative = async (fields?: Fields) =>
  generativeScoringResponse.parse(await answer('/generative_scoring', fields));
const scoring = async (fields?: Fields) => scoringResponse.parse(await answer('/v1/score', fields));

/** Item i has the probabilities 0.1 · (i + 1) and 0.3 for the labels 5 and 9. */
function script(): void {
  origin.script = (request, wire) => {
    const tokens = request.prompts.flatMap((_, choice): GenerationEvent[] => {
      const listed = (request.logprobTokenIds ?? []).map((id): [number, string, number] => {
        const probability = id === 9 ? 0.3 : 0.1 * (choice + 1);
        return [id, `<${id}>`, Math.log(probability)];
      });
      const sampled = { ...token(7, 'x', -0.7, 0), topLogprobs: listed };
      return [
        { type: 'token', choice, text: 'x', completionTokens: 1, ids: [7], logprobs: [sampled] },
        finishOf(choice, 'length', 1),
      ];
    });
    wire.send(...acceptedFor(request), ...tokens, doneFor(request, request.prompts.length));
    wire.end();
  };
}

describe('POST /generative_scoring', () => {
  test('returns the share of the first label, and counts a label once', async () => {
    script();
    const { id, ...whole } = await generative();
    expect(id).toMatch(/^generative-scoring-[0-9a-f]{32}$/);
    expect(whole).toMatchObject({ object: 'list', model: 'default', usage: { completion_tokens: 2 } });
    expect(whole.data.map(({ index }) => index)).toEqual([0, 1]);
    for (const [index, expected] of [0.1 / 0.4, 0.2 / 0.5].entries())
      expect(whole.data[index]?.score).toBeCloseTo(expected, 10);
  });

  test('returns probabilities over the whole vocabulary without softmax', async () => {
    script();
    const { data } = await generative({ apply_softmax: false });
    for (const [index, expected] of [0.1, 0.2].entries())
      expect(data[index]?.score).toBeCloseTo(expected, 10);
  });

  test('encodes query and item separately, in either order, and generates one token', async () => {
    script();
    await generative();
    await generative({ item_first: true, query: [1, 2], items: [[3], [4, 5]] });
    await generative({ query: [1, 2], items: 'text', add_special_tokens: false });
    expect(origin.requests[0]).toMatchObject({
      prompts: [
        ['q ', 'a'],
        ['q ', 'bc'],
      ],
      maxTokens: 1,
      topLogprobs: 0,
      logprobTokenIds: [5, 9],
      contextOverflow: 'error',
    });
    expect(origin.requests[1]?.prompts).toEqual([
      [3, 1, 2],
      [4, 5, 1, 2],
    ]);
    expect(origin.requests[2]).toMatchObject({ prompts: [[1, 2, 'text']], addSpecialTokens: false });
  });
});

describe("POST /v1/score with SGLang's fields", () => {
  test('returns the probability of each label in their order', async () => {
    script();
    const { scores, object } = await scoring();
    expect(object).toBe('scoring');
    for (const [index, expected] of [
      [0.1, 0.3, 0.1],
      [0.2, 0.3, 0.2],
    ].entries())
      for (const [label, value] of expected.entries()) expect(scores[index]?.[label]).toBeCloseTo(value, 10);
  });

  test('divides by the sum of the listed labels on request', async () => {
    script();
    const { scores } = await scoring({ apply_softmax: true });
    expect(scores[0]?.[1]).toBeCloseTo(0.3 / 0.5, 10);
    for (const one of scores) expect(one.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 10);
  });

  test('encodes query and item as one text', async () => {
    script();
    await scoring();
    await scoring({ item_first: true });
    expect(origin.requests.map(({ prompts }) => prompts)).toEqual([
      ['q a', 'q bc'],
      ['aq ', 'bcq '],
    ]);
  });
});

describe('a 400 names the field', () => {
  test.each([
    ['query', 'missing_required_parameter', { query: null }],
    ['query[1]', 'integer_below_min_value', { query: [1, -1] }],
    ['items', 'missing_required_parameter', { items: null }],
    ['items', 'empty_array', { items: [] }],
    ['items', 'array_above_max_length', { items: new Array(257).fill('a') }],
    ['items[1]', 'invalid_type', { items: ['a', [1]] }],
    ['label_token_ids', 'missing_required_parameter', { label_token_ids: undefined }],
    ['label_token_ids', 'empty_array', { label_token_ids: [] }],
    ['label_token_ids', 'array_above_max_length', { label_token_ids: new Array(129).fill(1) }],
    ['label_token_ids[0]', 'integer_below_min_value', { label_token_ids: [-1] }],
    ['apply_softmax', 'invalid_type', { apply_softmax: 'yes' }],
  ])('%s: %s', async (param, code, fields) => {
    for (const route of ['/generative_scoring', '/v1/score']) {
      const response = await send(route, fields);
      expect([response.status, await response.json()]).toMatchObject([400, { error: { param, code } }]);
    }
    expect(origin.requests).toEqual([]);
  });

  test.each<[string, string, Fields]>([
    ['logprob_token_ids', 'label_token_ids', {}],
    ['prompt[1]', 'items[1]', {}],
    ['prompt[1][0]', 'query[0]', { query: [8, 9], items: [[1], [2]] }],
    ['prompt[1][3]', 'items[1][1]', { query: [8, 9], items: [[1], [2, 3]] }],
    ['prompt[1][3]', 'query[1]', { query: [8, 9], items: [[1], [2, 3]], item_first: true }],
    ['prompt[1]', 'query[1]', { query: [8, 9], items: [[1]] }],
    ['prompt[2]', 'items[0][0]', { query: [8, 9], items: [[1]] }],
    ['prompt', 'items[0]', { items: ['a'] }],
  ])('of the origin: %s is %s', async (param, name, fields) => {
    origin.script = (_, wire) =>
      wire.refuse(400, { error: { code: 'invalid_value', message: `Invalid '${param}'.`, param } });
    const response = await send('/generative_scoring', fields);
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: name, message: `Invalid '${name}'.` } },
    ]);
  });
});

test('usage is that of the prompts and one token per item', async () => {
  script();
  const { key } = await tenantWithKey(worker, 'labels');
  await send('/generative_scoring', {}, { authorization: `Bearer ${key}` });
  const row = await eventually(
    async () => (await admin(worker, 'GET', '/usage?tenant=labels&group_by=model')).body.data[0],
    (found) => found !== undefined,
  );
  expect(row).toMatchObject({ requests: 1, completed: 1, prompt_tokens: 7, completion_tokens: 2 });
});

test('null counts as absent: a required field is missing, and a null query is none', async () => {
  for (const route of ['/generative_scoring', '/v1/score']) {
    const refused = await send(route, { label_token_ids: null });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 'missing_required_parameter', param: 'label_token_ids' } },
    ]);
  }
  const likelihoods = await send('/v1/score', { query: null, continuations: ['b'] });
  expect(await likelihoods.json()).toMatchObject({ error: { param: 'prompt' } });
});
