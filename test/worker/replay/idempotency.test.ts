import { expect, test } from 'vitest';
import { admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { acceptedFor, defaultScript, doneFor, finishOf } from '../support/scripts.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

const ask = (key: string, fields: Record<string, unknown> = {}) =>
  worker.post({ model: 'org/tiny', prompt: 'Hi', ...fields }, { headers: { 'idempotency-key': key } });

test('replays the first response and runs the model once', async () => {
  const first = await (await ask('once')).json();
  const second = await ask('once');
  expect(second.headers.get('idempotent-replayed')).toBe('true');
  expect(await second.json()).toEqual(first);
  expect(origin.requests).toHaveLength(1);
});

test('rejects another body with the same key', async () => {
  await ask('other-body');
  const { status, headers } = await ask('other-body', { prompt: 'Bye' });
  expect([status, headers.get('x-should-retry')]).toEqual([409, 'false']);
});

test('treats the same body in another dialect as another request', async () => {
  const askAs = (dialect: string) =>
    worker.post(
      { model: 'org/tiny', prompt: 'Hi' },
      { headers: { 'idempotency-key': 'other-dialect', 'x-dialect': dialect } },
    );
  expect((await askAs('openai')).status).toBe(200);
  expect((await askAs('fireworks')).status).toBe(409);
  expect((await askAs('none')).status).toBe(400);
  expect((await ask('other-dialect')).headers.get('idempotent-replayed')).toBe('true');
});

test('does not replay a response to a key that may not use the model', async () => {
  const { key } = await tenantWithKey(worker, 'two-keys');
  const other = { tenant: 'two-keys', name: 'other', models: ['another'] };
  const { body } = await admin(worker, 'POST', '/keys', other);
  const statuses: number[] = [];
  for (const secret of [key, body.key, key]) {
    const headers = { authorization: `Bearer ${secret}`, 'idempotency-key': 'two-keys' };
    statuses.push((await worker.post({ model: 'org/tiny', prompt: 'Hi' }, { headers })).status);
  }
  expect(statuses).toEqual([200, 409, 200]);
});

test('separates the idempotency keys of tenants', async () => {
  for (const tenant of ['one', 'another']) {
    const { key } = await tenantWithKey(worker, `${tenant}-tenant`);
    const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'of-two-tenants' };
    const answer = await worker.post({ model: 'org/tiny', prompt: 'Hi' }, { headers });
    expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([200, null]);
  }
  expect(origin.requests).toHaveLength(2);
});

test('asks repeated requests to retry while the first one runs', async () => {
  const answerNow = Promise.withResolvers<void>();
  origin.script = async (request, wire) => {
    await answerNow.promise;
    return defaultScript(request, wire);
  };
  const first = ask('running');
  await eventually(
    async () => origin.requests.length,
    (count) => count === 1,
  );
  let second = await ask('running');
  expect(second.status).toBe(409);
  expect(second.headers.get('retry-after')).toBe('1');
  answerNow.resolve();
  expect((await first).status).toBe(200);
  second = await ask('running');
  expect(second.status).toBe(200);
  expect(origin.requests).toHaveLength(1);
});

test('frees the key after a failure, and rejects it for a stream', async () => {
  origin.script = (_, wire) => wire.refuse(500, {});
  expect((await ask('failed')).status).toBe(502);
  origin.reset();
  expect((await ask('failed')).status).toBe(200);
  const streamed = await ask('streamed', { stream: true });
  expect([streamed.status, await streamed.json()]).toMatchObject([
    400,
    { error: { param: 'idempotency-key' } },
  ]);
  expect((await ask('streamed')).status).toBe(200);
  expect(origin.requests).toHaveLength(2);
});

test('replays a response that is larger than a stored value, and rejects another body', async () => {
  origin.script = async (request, wire) => {
    wire.send(...acceptedFor(request));
    // More bytes than the platform stores in one value.
    // A surrogate pair lies across the pieces.
    const text = `${'\u0448'.repeat(3)}${'😀'.repeat(120_000)}`;
    for (let count = 1; count <= 10; count += 1) {
      wire.send({ type: 'token', choice: 0, text, completionTokens: count });
    }
    wire.send(finishOf(0, 'length', 10), doneFor(request, 10));
    wire.end();
  };
  const first = await ask('large', { max_tokens: 10 });
  expect(first.status).toBe(200);
  const text = await first.text();
  expect(text.length).toBeGreaterThan(2_100_000);
  const second = await ask('large', { max_tokens: 10 });
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
  expect((await second.text()) === text).toBe(true);
  expect((await ask('large', { max_tokens: 9 })).status).toBe(409);
  expect(origin.requests).toHaveLength(1);
});

test('replays the headers that say what was ignored', async () => {
  const fields = { guided_jsn: {}, json_schema: { type: 'string', titel: 'x' } };
  origin.ignoredKeywords = 'titel';
  for (const replayed of [null, 'true']) {
    const { headers } = await ask('ignored', fields);
    const names = ['idempotent-replayed', 'x-ignored-fields', 'x-ignored-keywords'];
    expect(names.map((name) => headers.get(name))).toEqual([replayed, 'guided_jsn', 'titel']);
  }
});

test('rejects an invalid key', async () => {
  expect((await ask('x'.repeat(256))).status).toBe(400);
});
