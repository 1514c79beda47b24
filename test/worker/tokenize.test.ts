import { describe, expect, test } from 'vitest';
import { admin, tenantWithKey } from './admin/admin-client.ts';
import { eventually } from './support/eventually.ts';
import { MODEL } from './support/fake-origin.ts';
import { sharedWorker } from './support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

const post = (path: string, body: unknown, key: string | null = null) =>
  worker.postTo(path, body, key === null ? {} : { authorization: `Bearer ${key}` });

describe('tokenizer routes', () => {
  test('answer as evaluation clients expect', async () => {
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

  test('answer as llama.cpp if the body has content, or in its dialect', async () => {
    const read = async (path: string, body: unknown, dialect = 'openai') => {
      const headers = { 'content-type': 'application/json', 'x-dialect': dialect };
      return (await worker.postTo(path, body, headers)).json();
    };
    expect(await read('/tokenize', { content: 'Hi' })).toEqual({ tokens: [72, 105] });
    expect(await read('/tokenize', { content: 'Hé€', add_special: true, with_pieces: true })).toEqual({
      tokens: [
        { id: 72, piece: 'H' },
        { id: 233, piece: 'é' },
        { id: 0x20ac, piece: [0xe2, 0x82] },
      ],
    });
    expect(origin.tokenizerRequests).toMatchObject([{ addSpecialTokens: false }, { addSpecialTokens: true }]);
    expect(await read('/detokenize', { tokens: [72, 105] }, 'llamacpp')).toEqual({ content: 'Hi' });
    expect(await read('/tokenize', { prompt: 'Hi' }, 'llamacpp')).toMatchObject({ count: 2 });
    expect(await read('/tokenize', {}, 'llamacpp')).toMatchObject({ error: { param: 'content' } });
    expect(await read('/tokenize', { content: 1 })).toMatchObject({ error: { param: 'content' } });
  });

  test('validate requests and require a key', async () => {
    expect(await (await post('/tokenize', {})).json()).toMatchObject({ error: { param: 'prompt' } });
    expect(await (await post('/detokenize', { tokens: [-1] })).json()).toMatchObject({
      error: { param: 'tokens[0]' },
    });
    const many = new Array(262_145).fill(72);
    expect(await (await post('/detokenize', { tokens: many })).json()).toMatchObject({
      error: { param: 'tokens', code: 'array_above_max_length' },
    });
    expect((await fetch(`${worker.url}/tokenizer_info`)).status).toBe(401);
  });
});

describe('tokenizer requests count against the limits of their tenant', () => {
  const CALLS = [
    ['/tokenize', { prompt: 'é'.repeat(1_000) }],
    ['/detokenize', { tokens: new Array(2_000).fill(72) }],
  ] as const;

  test.each(CALLS)('%s is refused with 429 above the requests per minute', async (path, body) => {
    const { key } = await tenantWithKey(worker, `once${path.slice(1)}`, { requests_per_minute: 1 });
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(path, body, key)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...new Array(9).fill(429)]);
    expect(origin.tokenizerRequests).toHaveLength(1);
    expect(answers.every(({ headers }) => headers.get('x-ratelimit-limit-requests') === '1')).toBe(true);
  });

  test.each(CALLS)('%s costs one token per 1,000 bytes or ids, and is in the ledger', async (path, body) => {
    const tenant = `ledger${path.slice(1)}`;
    const { key } = await tenantWithKey(worker, tenant, { tokens_per_minute: 100 });
    expect((await post(path, body, key)).headers.get('x-ratelimit-remaining-tokens')).toBe('98');
    const usage = async () =>
      (await admin(worker, 'GET', `/usage?tenant=${tenant}&group_by=model`)).body.data[0];
    const row = await eventually(usage, (found) => found !== undefined);
    expect(row).toMatchObject({ model: 'org/tiny', requests: 1, completed: 1, prompt_tokens: 2 });
  });

  test('a request that the origin refuses costs no tokens', async () => {
    const { key } = await tenantWithKey(worker, 'refused', { tokens_per_minute: 100 });
    const beyond = new Array(8_000).fill(MODEL.vocabularySize);
    const answer = await post('/detokenize', { tokens: beyond }, key);
    expect(answer.status).toBe(400);
    expect(answer.headers.get('x-ratelimit-remaining-tokens')).toBe('92');
    const usage = async () => (await admin(worker, 'GET', '/usage?tenant=refused')).body.data[0];
    const row = await eventually(usage, (found) => found !== undefined);
    expect(row).toMatchObject({ requests: 1, failed: 1, prompt_tokens: 0 });
    const next = await post('/detokenize', { tokens: [72] }, key);
    expect(next.headers.get('x-ratelimit-remaining-tokens')).toBe('99');
  });

  test('the origin learns the tenant, and whether token strings are wanted', async () => {
    const { key } = await tenantWithKey(worker, 'acme');
    await post('/tokenize', { prompt: 'Hi' }, key);
    await post('/tokenize', { prompt: 'Hi', return_token_strs: true }, key);
    await post('/detokenize', { tokens: [72] }, key);
    expect(origin.tokenizerRequests).toMatchObject([
      { tenantId: 'acme', weight: 1, withStrings: false },
      { tenantId: 'acme', withStrings: true },
      { tenantId: 'acme', weight: 1 },
    ]);
  });
});
