import { describe, expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, tenantWithKey } from './admin/admin-client.ts';
import { complete } from './support/completions.ts';
import { MODEL } from './support/fake-origin.ts';
import { KEY, startWorker } from './support/worker.ts';
import { workerForTests } from './support/worker-for-tests.ts';

const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 });

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
    const listed = [model, { ...model, id: 'default' }];
    expect(await (await worker.request('/v1/models')).json()).toEqual({ object: 'list', data: listed });
    expect(await (await worker.request(`/v1/models/${MODEL.id}`)).json()).toEqual(model);
    expect(await (await worker.request(`/v1/models/${encodeURIComponent(MODEL.id)}`)).json()).toEqual(model);
    expect(await (await worker.request(`/v1/models/${MODEL.id}/`)).json()).toEqual(model);
    expect((await worker.request('/v1/models/org/none')).status).toBe(404);
  });

  test('lists and serves a model under its aliases, with ids before aliases', async () => {
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
    for (const model of ['short', 'default', 'second']) await complete(worker, { model });
    expect(origin.requests.map(({ model }) => model)).toEqual([MODEL.id, MODEL.id, 'second']);
  });

  test('lists and serves models under the names of a tenant, and names them in the 404', async () => {
    const second = { ...MODEL, id: 'second', aliases: ['short'] };
    origin.models = [{ ...MODEL, aliases: ['mini'] }, second];
    const { key } = await tenantWithKey(worker, 'own-names');
    const { key: narrow } = await tenantWithKey(worker, 'own-names-narrow');
    const aliases = { 'davinci-002': 'second', mini: 'short', default: 'second', lost: 'none' };
    for (const id of ['own-names', 'own-names-narrow'])
      await admin(worker, 'PATCH', `/tenants/${id}`, { aliases: { ...aliases, old_name: 'second' } });
    const changed = await admin(worker, 'PATCH', '/tenants/own-names', { aliases: { old_name: null } });
    expect(changed.body).toMatchObject({ aliases });
    const headers = { authorization: `Bearer ${key}` };
    const { data } = (await (await worker.request('/v1/models', { headers })).json()) as {
      data: { id: string; root: string }[];
    };
    expect(data.map(({ id, root }) => [id, root])).toEqual([
      [MODEL.id, MODEL.id],
      ['second', 'second'],
      ...['davinci-002', 'mini', 'default', 'short'].map((name) => [name, 'second']),
    ]);
    for (const model of ['davinci-002', 'mini', 'default', MODEL.id])
      await complete(worker, { model }, headers);
    const served = origin.requests.map(({ model }) => model);
    expect(served).toEqual(['second', 'second', 'second', MODEL.id]);
    const lost = await worker.post({ model: 'lost', prompt: 'Hi' }, { headers });
    expect(await lost.text()).toMatch(/'davinci-002', 'mini', 'default', 'short'/);
    // Other tenants do not have the names.
    expect((await worker.post({ model: 'davinci-002', prompt: 'Hi' })).status).toBe(404);
    const old = { authorization: `Bearer ${narrow}` };
    expect((await worker.post({ model: 'old_name', prompt: 'Hi' }, { headers: old })).status).toBe(200);
  });

  test('answers 503 without the reason for a model whose files the origin cannot read', async () => {
    const numbers = { created: 0, contextLength: 0, vocabularySize: 0 };
    const broken = {
      ...MODEL,
      ...numbers,
      id: 'broken',
      state: 'unavailable' as const,
      reason: '/srv/private',
    };
    origin.models = [MODEL, broken];
    const listed = await (await worker.request('/v1/models')).text();
    expect(JSON.parse(listed)).toMatchObject({
      data: [{ id: MODEL.id }, { id: 'broken', state: 'unavailable' }],
    });
    const refused = await worker.post({ model: 'broken', prompt: 'Hi' });
    const answer = await refused.text();
    expect([refused.status, refused.headers.get('x-should-retry')]).toEqual([503, 'false']);
    expect(JSON.parse(answer)).toMatchObject({ error: { code: 'model_unavailable' } });
    for (const text of [listed, answer]) expect(text).not.toContain('private');
    expect(origin.requests).toEqual([]);
  });

  test('lists no default where it selects no model', async () => {
    origin.models = [MODEL, { ...MODEL, id: 'second' }];
    const { data } = (await (await worker.request('/v1/models')).json()) as { data: object[] };
    expect(data).toMatchObject([{ id: MODEL.id }, { id: 'second' }]);
  });

  test.each(['llamacpp', 'mistralrs', 'vllm'])(
    'completes without a model in the dialect %s',
    async (dialect) => {
      await complete(worker, { model: undefined }, { 'x-dialect': dialect });
      await complete(worker, { model: null }, { 'x-dialect': dialect });
      expect(origin.requests.map(({ model }) => model)).toEqual([MODEL.id, MODEL.id]);
      origin.models = [MODEL, { ...MODEL, id: 'second' }];
      const headers = { 'x-dialect': dialect };
      expect((await worker.post({ prompt: 'Hi' }, { headers })).status).toBe(404);
    },
  );

  test('names at most 10 models that the key may use if a model is not found', async () => {
    origin.models = Array.from({ length: 12 }, (_, index) => ({ ...MODEL, id: `m${index}` }));
    const messageFor = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await worker.post({ model: 'none', prompt: 'Hi' }, { headers });
      return ((await answer.json()) as { error: { message: string } }).error.message;
    };
    expect(await messageFor(KEY)).toMatch(/Available models: 'm0', .*'m9' and more\.$/);
    const { key } = await tenantWithKey(worker, 'two-models', {}, { models: ['m3', 'm11'] });
    expect(await messageFor(key)).toMatch(/Available models: 'm3', 'm11'\.$/);
  });

  test('serves the only model of a key without a name, and lists it as the default', async () => {
    origin.models = [
      { ...MODEL, aliases: ['default'] },
      { ...MODEL, id: 'second', aliases: ['short'] },
    ];
    const { key } = await tenantWithKey(worker, 'one-model', {}, { models: ['second'] });
    const headers = { authorization: `Bearer ${key}` };
    for (const model of ['default', undefined])
      await complete(worker, { model }, { ...headers, 'x-dialect': 'vllm' });
    await complete(worker, { model: 'any' }, { ...headers, 'x-dialect': 'llamacpp' });
    expect(origin.requests.map(({ model }) => model)).toEqual(['second', 'second', 'second']);
    expect(await (await worker.request('/v1/models', { headers })).json()).toMatchObject({
      data: [{ id: 'second' }, { id: 'short' }, { id: 'default', root: 'second' }],
    });
    const refused = await worker.post({ model: MODEL.id, prompt: 'Hi' }, { headers });
    expect(refused.status).toBe(404);
    expect(await refused.text()).toContain("Available models: 'second', 'short', 'default'.");
  });

  test('names the aliases of the models as well if a model is not found', async () => {
    origin.models = [
      { ...MODEL, aliases: ['short', 'second'] },
      { ...MODEL, id: 'second', aliases: ['other'] },
    ];
    const answer = (await (await worker.post({ model: 'none', prompt: 'Hi' })).json()) as {
      error: { message: string };
    };
    expect(answer.error.message).toMatch(/Available models: 'org\/tiny', 'second', 'short', 'other'\.$/);
  });

  test('serves models under the names in MODEL_ALIASES', async () => {
    const aliased = await startWorker(origin, { MODEL_ALIASES: `davinci-002=${MODEL.id}, absent=none` });
    try {
      await complete(aliased, { model: 'davinci-002' });
      expect(origin.requests.map(({ model }) => model)).toEqual([MODEL.id]);
      const { data } = (await (await aliased.request('/v1/models')).json()) as { data: object[] };
      expect(data).toMatchObject([
        { id: MODEL.id },
        { id: 'davinci-002', root: MODEL.id },
        { id: 'default', root: MODEL.id },
      ]);
      expect((await aliased.post({ model: 'absent', prompt: 'Hi' })).status).toBe(404);
    } finally {
      await aliased.stop();
    }
  });

  test('shows a model under every name that completions accept', async () => {
    const shown = async (name: string, dialect = 'openai') => {
      const response = await worker.request(`/v1/models/${name}`, { headers: { 'x-dialect': dialect } });
      return [response.status, await response.json()];
    };
    expect(await shown('default')).toMatchObject([200, { id: 'default', root: MODEL.id }]);
    expect(await shown('anything')).toMatchObject([404, { error: { code: 'model_not_found' } }]);
    expect(await shown('anything', 'llamacpp')).toMatchObject([200, { id: 'anything', root: MODEL.id }]);
    origin.models = [MODEL, { ...MODEL, id: 'second' }];
    expect(await shown('default')).toMatchObject([404, { error: { param: 'model' } }]);
  });

  test("applies the model's defaults to fields without a value in request and dialect", async () => {
    origin.models = [{ ...MODEL, defaults: { temperature: 0.3, topK: 7, maxTokens: 3 } }];
    await complete(worker, { max_tokens: undefined });
    await complete(worker, { max_tokens: 5, temperature: 1, top_k: -1 });
    await complete(worker, { max_tokens: undefined }, { 'x-dialect': 'llamacpp' });
    const sent = origin.requests.map(({ maxTokens, sampling: { temperature, topK, topP } }) => [
      maxTokens,
      temperature,
      topK,
      topP,
    ]);
    expect(sent).toEqual([
      [3, 0.3, 7, 1],
      [5, 1, 0, 1],
      ['end', 0.8, 40, 0.95],
    ]);
  });

  test('answers health without a key or an origin, and HEAD without a body', async () => {
    const response = await fetch(`${worker.url}/health`);
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
    const head = await fetch(`${worker.url}/health`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});
