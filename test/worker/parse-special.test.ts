import { expect, test } from 'vitest';
import { CAPABILITIES } from '../../shared/capabilities.ts';
import { errorResponseBody } from '../../shared/completion-response.ts';
import { sharedWorker } from './support/worker-for-tests.ts';

/** `parse_special: false` reaches the tokenizer from every address that takes text. */

const { worker, origin } = sharedWorker();

const post = (path: string, body: object) => worker.postTo(path, { model: 'default', ...body });

const GENERATIONS = [
  ['/v1/completions', { prompt: 'x' }],
  ['/completion', { prompt: 'x' }],
  ['/v1/score', { prompt: 'x', continuations: ['y'] }],
  ['/v1/score', { query: 'x', items: ['y'], label_token_ids: [1] }],
  ['/generative_scoring', { query: 'x', items: ['y'], label_token_ids: [1] }],
] as const;

test.each(GENERATIONS)('%s with %j', async (path, body) => {
  for (const parse_special of [false, true, null]) await post(path, { ...body, parse_special });
  expect(origin.requests.map(({ plainText }) => plainText)).toEqual([true, undefined, undefined]);
  const response = await post(path, { ...body, parse_special: 0 });
  const { error } = errorResponseBody.parse(await response.json());
  expect([response.status, error.param]).toEqual([400, 'parse_special']);
});

const TEXTS = [{ prompt: 'x' }, { content: 'x' }];

test.each(TEXTS)('/tokenize with %j', async (body) => {
  for (const parse_special of [false, true, null])
    expect((await post('/tokenize', { ...body, parse_special })).status).toBe(200);
  expect(origin.tokenizerRequests).toMatchObject([
    { parseSpecial: false },
    { parseSpecial: true },
    { parseSpecial: true },
  ]);
});

test('fails at an origin that would ignore it', async () => {
  origin.capabilities = CAPABILITIES.filter((name) => name !== 'plainText');
  for (const [path, body] of [...GENERATIONS, ['/tokenize', { prompt: 'x' }] as const])
    expect((await post(path, { ...body, parse_special: false })).status).toBe(502);
  expect((await post('/tokenize', { prompt: 'x' })).status).toBe(200);
});
