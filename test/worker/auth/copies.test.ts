import { describe, expect, test } from 'vitest';
import { ADMIN_KEY, ADMIN_KEY_SHA256, admin, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests(
  { ADMIN_KEY_SHA256 },
  { entry: 'test/worker/support/entries/lagging-copy.ts' },
);

type Headers = Readonly<Record<string, string>>;

const MINUTE_MS = 60_000;

const models = async (key: string, headers: Headers) =>
  (await worker.request('/v1/models', { headers: { authorization: `Bearer ${key}`, ...headers } })).status;

const complete = async (key: string, headers: Headers) => {
  const body = { model: 'org/tiny', prompt: 'Hi', max_tokens: 4 };
  return (await worker.post(body, { headers: { authorization: `Bearer ${key}`, ...headers } })).status;
};

/** Returns what the copy and the primary served while `work` ran. */
async function readsOf(work: () => Promise<unknown>): Promise<{ copy: number; primary: number }> {
  const read = async () =>
    (await (await worker.request('/reads')).json()) as { copy: number; primary: number };
  const before = await read();
  await work();
  const after = await read();
  return { copy: after.copy - before.copy, primary: after.primary - before.primary };
}

const COPY = { 'x-copy': '1' };

describe('with copies of the database that lag', () => {
  test('a new key works at once, also before a copy has it', async () => {
    const { key } = await tenantWithKey(worker, 'new');
    const served = await readsOf(async () => expect(await models(key, { 'x-isolate': 'b' })).toBe(200));
    // The copy has no key; the primary has.
    expect(served.primary).toBe(1);
    expect(await readsOf(() => models(key, { 'x-isolate': 'b' }))).toEqual({ copy: 0, primary: 0 });
  });

  test('a key that a copy has is not read from the primary', async () => {
    const { key } = await tenantWithKey(worker, 'old');
    await models(key, { 'x-isolate': 'c', ...COPY });
    const served = await readsOf(async () => expect(await models(key, { 'x-isolate': 'd' })).toBe(200));
    expect(served.primary).toBe(0);
  });

  test('a copy that still has a revoked key as valid cannot give it another minute', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'ended');
    const now = Date.now();
    const at = (ms: number) => ({ 'x-now': String(now + ms), 'x-isolate': 'e' });
    expect(await models(key, { ...at(0), ...COPY })).toBe(200);
    expect(await complete(key, at(0))).toBe(200);
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    expect(await models(key, at(MINUTE_MS - 1))).toBe(200);
    await models(key, at(MINUTE_MS));
    await eventually(
      () => models(key, at(MINUTE_MS)),
      (status) => status === 401,
    );
    // An isolate that has never seen the key reads it from the copy as well.
    const other = { ...at(MINUTE_MS), 'x-isolate': 'f' };
    expect(await complete(key, other)).toBe(401);
    await eventually(
      () => models(key, other),
      (status) => status === 401,
    );
  });

  test('a key that a copy has as revoked is not read from the primary', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'long-ended');
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    const here = { 'x-isolate': 'h', 'x-copy': '1' };
    const twice = async () => expect([await models(key, here), await models(key, here)]).toEqual([401, 401]);
    // The key and the list of upstreams.
    expect(await readsOf(twice)).toEqual({ copy: 2, primary: 0 });
  });

  test('the isolate that has changed a key reads its change, and the admin API reads the primary', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'changed');
    await models(key, COPY);
    const { body } = await admin(worker, 'PATCH', `/keys/${keyId}`, { models: ['other'] });
    expect(body.models).toEqual(['other']);
    expect((await admin(worker, 'GET', `/keys/${keyId}`)).body.models).toEqual(['other']);
    expect(await complete(key, {})).toBe(404);
    const listed = await worker.request('/admin/v1/keys?tenant=changed', {
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'x-isolate': 'g' },
    });
    expect(await listed.json()).toMatchObject({ data: [{ id: keyId, models: ['other'] }] });
  });
});
