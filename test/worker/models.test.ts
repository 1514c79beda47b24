import { describe, expect, test } from 'vitest';
import { complete } from './support/completions.ts';
import { MODEL } from './support/fake-origin.ts';
import { workerForTests } from './support/worker-for-tests.ts';

const { worker, origin } = workerForTests();

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
    expect(await (await worker.request('/v1/models')).json()).toEqual({ object: 'list', data: [model] });
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
      [-1, 0.8, 40, 0.95],
    ]);
  });

  test('answers health without a key or an origin, and HEAD without a body', async () => {
    const response = await fetch(`${worker.url}/health`);
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
    const head = await fetch(`${worker.url}/health`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});
