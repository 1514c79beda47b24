import { describe, expect, test } from 'vitest';
import { completion } from '../admin/admin-client.ts';
import { type FakeOrigin, MODEL, SECRET } from '../support/fake-origin.ts';
import { KEY, startWorker } from '../support/worker.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { origins, worker } = upstreamsForTests();

describe('several origins', () => {
  test('equal prompts go to the same origin, different prompts to both', async () => {
    for (let count = 0; count < 4; count += 1) await completion(worker, KEY, { prompt: 'same' });
    expect(origins.map(({ requests }) => requests.length).toSorted()).toEqual([0, 4]);
    for (let count = 0; count < 12; count += 1) await completion(worker, KEY, { prompt: `other ${count}` });
    expect(origins.every(({ requests }) => requests.length > 0)).toBe(true);
  });

  test('an infill goes to the origin that was warmed with its files', async () => {
    const infill = (fields: Readonly<Record<string, unknown>>) =>
      worker.postTo('/infill', { model: MODEL.id, input_prefix: '', input_suffix: '', ...fields });
    for (let count = 0; count < 12; count += 1) {
      const before = origins.map(({ requests }) => requests.length);
      const input_extra = [{ text: `file ${count}` }, { text: 'another' }];
      await infill({ input_extra, n_predict: 0 });
      await infill({ input_extra, input_prefix: `line ${count}`, n_predict: 1 });
      const grown = origins.map(({ requests }, index) => requests.length - (before[index] ?? 0));
      expect(grown.toSorted()).toEqual([0, 2]);
    }
    expect(origins.every(({ requests }) => requests.length > 0)).toBe(true);
  });

  test.each([
    ['an error status', 'status'],
    ['a cut connection', 'cut'],
    ['an answer that ends before its first event', 'empty'],
    ['an error as first event', 'event'],
  ])('%s: the request is retried once at the other origin', async (_, how) => {
    let asked = 0;
    for (const origin of origins) {
      const usual = origin.script;
      origin.script = (request, wire) => {
        asked += 1;
        if (asked > 1) return usual(request, wire);
        if (how === 'status') wire.refuse(500, {});
        else if (how === 'cut') wire.die();
        else if (how === 'empty') wire.end();
        else {
          wire.send({ type: 'error', code: 'upstream_error', message: 'x', param: null, retryable: true });
          wire.end();
        }
      };
    }
    const { status, body } = await completion(worker, KEY, { prompt: 'retry me' });
    expect([status, body.usage.completion_tokens, asked]).toEqual([200, 4, 2]);
  });

  const refusing =
    (code: string, headers: Record<string, string>): FakeOrigin['script'] =>
    (_, wire) =>
      wire.refuse(503, { error: { message: 'x', type: 'server_error', param: null, code } }, headers);

  test('prefers the origin that has the model loaded', async () => {
    for (const origin of origins) origin.models = [{ ...MODEL, state: 'loaded' }];
    for (let count = 0; count < 8; count += 1) {
      origins[0].script = refusing('model_loading', { 'retry-after': '9' });
      expect((await completion(worker, KEY, { prompt: `loading ${count}` })).status).toBe(200);
    }
    expect(origins[1].requests).toHaveLength(8);
    expect(origins[0].requests.length).toBeGreaterThan(0);
  });

  test.each([
    [
      'both load the model: the shorter wait',
      ['model_loading', '9'],
      ['model_loading', '4'],
      'model_loading',
      '4',
    ],
    [
      'one loads the model, one fails: the wait',
      ['model_loading', '9'],
      ['upstream_error', '1'],
      'model_loading',
      '9',
    ],
    [
      'one cannot load the model: the wait',
      ['model_unavailable', ''],
      ['model_loading', '3'],
      'model_loading',
      '3',
    ],
  ])('of two errors the client gets the more useful one: %s', async (_, first, second, code, wait) => {
    const faults = [first, second];
    for (const [index, origin] of origins.entries()) {
      const [fault, seconds] = faults[index] as [string, string];
      origin.script =
        fault === 'upstream_error'
          ? (_request, wire) => wire.die()
          : refusing(fault, seconds === '' ? { 'x-should-retry': 'false' } : { 'retry-after': seconds });
    }
    const answered = await completion(worker, KEY);
    expect([answered.status, answered.body.error.code]).toEqual([503, code]);
    expect(answered.headers.get('retry-after')).toBe(wait);
    expect(answered.headers.get('x-should-retry')).toBe('true');
  });

  test('a model that no origin can load gives an error that must not be retried', async () => {
    for (const origin of origins)
      origin.script = refusing('model_unavailable', { 'x-should-retry': 'false' });
    const { status, body, headers } = await completion(worker, KEY);
    expect([status, body.error.code]).toEqual([503, 'model_unavailable']);
    expect([headers.get('x-should-retry'), headers.get('retry-after')]).toEqual(['false', null]);
  });

  test('invalid requests are not retried', async () => {
    const error = { message: 'too long', type: 'x', param: 'prompt', code: 'context_length_exceeded' };
    for (const origin of origins) origin.script = (_, wire) => wire.refuse(400, { error });
    expect((await completion(worker, KEY)).body.error.code).toBe('context_length_exceeded');
    expect(origins[0].requests.length + origins[1].requests.length).toBe(1);
  });

  test('a 408 of the origin is a failure of the origin, and not of the caller', async () => {
    const error = { message: 'slow', type: 'x', param: null, code: 'request_timeout' };
    origins[0].script = origins[1].script = (_, wire) => wire.refuse(408, { error });
    const answer = await completion(worker, KEY);
    expect([answer.status, answer.body.error.code]).toEqual([504, 'upstream_timeout']);
    expect(origins[0].requests.length + origins[1].requests.length).toBe(2);
  });

  test('a request is not retried after its first event', async () => {
    for (const origin of origins) {
      origin.script = async (request, wire) => {
        wire.send({ type: 'accepted', model: request.model, promptTokens: [2] });
        wire.send({ type: 'token', choice: 0, text: 'x', completionTokens: 1 });
        await new Promise((resolve) => setTimeout(resolve, 100));
        wire.die();
      };
    }
    expect((await completion(worker, KEY)).body.error.code).toBe('upstream_error');
    expect(origins[0].requests.length + origins[1].requests.length).toBe(1);
  });

  test('if one origin is down, the other one serves all requests', async () => {
    origins[0].script = (_, wire) => wire.die();
    for (let count = 0; count < 8; count += 1) {
      expect((await completion(worker, KEY, { prompt: `away ${count}` })).status).toBe(200);
    }
    expect(origins[1].requests).toHaveLength(8);
  });
});

test('public names map to models of one origin; a name without a model is not listed', async () => {
  origins[0].models = [MODEL, { ...MODEL, id: 'tiny-coder', aliases: ['fim'] }];
  const { data } = (await (await worker.request('/v1/models')).json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['org/tiny', 'writer', 'coder', 'foreign']),
  );
  expect(data.map(({ id }) => id)).not.toContain('gone');
  for (const model of ['writer', 'coder']) {
    expect((await completion(worker, KEY, { model })).body).toMatchObject({ model });
  }
  expect(origins[0].requests.map(({ model }) => model)).toEqual(['org/tiny', 'fim']);
  expect((await completion(worker, KEY, { model: 'gone' })).status).toBe(404);
});

test('requests go to the origin that has the model loaded, if there is one', async () => {
  const unloaded = { ...MODEL, state: 'unloaded' } as const;
  origins[0].models = [unloaded];
  for (let count = 0; count < 8; count += 1) await completion(worker, KEY, { prompt: `where ${count}` });
  expect(origins.map(({ requests }) => requests.length)).toEqual([0, 8]);
  const shown = (await (await worker.request('/v1/models/org/tiny')).json()) as { state: string };
  expect(shown.state).toBe('loaded');
});

test('an origin without an address is reached through its binding', async () => {
  expect((await completion(worker, KEY, { model: 'bound' })).status).toBe(200);
  expect(origins[0].requests).toHaveLength(1);
});

test('a model is not a 404 while the models of an origin are unknown', async () => {
  const away = { kind: 'origin', name: 'away', url: 'http://127.0.0.1:9' };
  const here = { kind: 'origin', name: 'here', url: origins[0].url };
  const fresh = await startWorker(origins[0], {
    UPSTREAMS: JSON.stringify([here, away]),
    ORIGIN_SECRET: SECRET,
  });
  try {
    for (const _ of ['found out', 'remembered']) {
      expect((await completion(fresh, KEY)).status).toBe(200);
      const { status, body, headers } = await completion(fresh, KEY, { model: 'elsewhere' });
      expect([status, body.error.code]).toEqual([502, 'upstream_error']);
      expect(headers.get('retry-after')).toBe('1');
      expect((await fresh.request('/v1/models/elsewhere')).status).toBe(502);
    }
  } finally {
    await fresh.stop();
  }
});
