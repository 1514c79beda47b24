import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../shared/tenant.ts';
import { checkGrant, checkHolds } from '../../../worker/account/grant.ts';
import {
  ADMIN_KEY_SHA256,
  type AnswerBody,
  admin,
  completion,
  tenantWithKey,
} from '../admin/admin-client.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests({ ADMIN_KEY_SHA256 });

async function call(key: string, method: string, path: string, body?: unknown) {
  const response = await worker.request(`/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as AnswerBody };
}

/** A tenant with a key that manages keys. */
const managed = (id: string, key: Readonly<Record<string, unknown>> = {}) =>
  tenantWithKey(worker, id, { tokens_per_minute: 50_000 }, { scopes: ['keys'], ...key });

describe('own keys', () => {
  test('a managing key creates, lists, changes, rotates and ends keys, and generates nothing itself', async () => {
    const { key: manager, keyId } = await managed('own-cycle');
    expect((await completion(worker, manager)).body.error.code).toBe('insufficient_scope');
    const made = await call(manager, 'POST', '/keys', { name: 'web', limits: { requests_per_minute: 3 } });
    expect(made.body).toMatchObject({ tenant: 'own-cycle', scopes: ['completions', 'models'] });
    expect((await completion(worker, made.body.key)).status).toBe(200);
    const { body: list } = await call(manager, 'GET', '/keys');
    expect(list.data.map(({ id }) => id).toSorted()).toEqual([keyId, made.body.id].toSorted());
    expect(JSON.stringify(list)).not.toContain(made.body.key.slice(16));
    const change = { name: 'site', limits: { tokens_per_minute: 9 }, expires_at: 4_000_000_000 };
    const { body: changed } = await call(manager, 'PATCH', `/keys/${made.body.id}`, change);
    const limits = { requests_per_minute: 3, tokens_per_minute: 9 };
    expect(changed).toMatchObject({ name: 'site', limits, expires_at: 4_000_000_000 });
    const { body: next } = await call(manager, 'POST', `/keys/${made.body.id}/rotate`, {
      overlap_seconds: 0,
    });
    expect((await completion(worker, made.body.key)).status).toBe(401);
    expect(next).toMatchObject({ name: 'site', limits });
    expect((await call(manager, 'DELETE', `/keys/${next.id}`)).status).toBe(200);
    expect((await completion(worker, next.key)).status).toBe(401);
  });

  test('a disabled key is refused at once, and works again when it is enabled', async () => {
    const { key: manager } = await managed('own-disabled');
    const { body: made } = await call(manager, 'POST', '/keys', { name: 'web' });
    expect((await completion(worker, made.key)).status).toBe(200);
    await call(manager, 'PATCH', `/keys/${made.id}`, { disabled: true });
    expect((await completion(worker, made.key)).status).toBe(401);
    expect((await call(made.key, 'GET', '/key')).status).toBe(401);
    await call(manager, 'PATCH', `/keys/${made.id}`, { disabled: false });
    expect((await completion(worker, made.key)).status).toBe(200);
  });

  test('other tenants’ keys do not exist for a managing key, and it cannot change or end itself', async () => {
    const { key: manager, keyId } = await managed('own-mine');
    const other = await tenantWithKey(worker, 'own-other');
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { disabled: true }],
      ['POST', '/rotate', {}],
      ['DELETE', '', undefined],
    ] as const)
      expect((await call(manager, method, `/keys/${other.keyId}${path}`, body)).status).toBe(404);
    expect((await completion(worker, other.key)).status).toBe(200);
    expect((await call(manager, 'DELETE', `/keys/${keyId}`)).body.error.code).toBe('conflict');
    expect((await call(manager, 'PATCH', `/keys/${keyId}`, { limits: {} })).status).toBe(409);
  });

  test('keys without the scope manage nothing, and a revoked managing key is refused at once', async () => {
    const { key: plain } = await tenantWithKey(worker, 'own-plain');
    expect((await call(plain, 'GET', '/keys')).body.error.code).toBe('insufficient_scope');
    const { key: manager, keyId } = await managed('own-revoked');
    expect((await call(manager, 'GET', '/keys')).status).toBe(200);
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    expect((await call(manager, 'GET', '/keys')).status).toBe(401);
  });

  test.each([
    [{ models: ['other'] }, 'models'],
    [{ expires_at: 4_000_000_001 }, 'expires_at'],
    [{ limits: { tokens_per_day: 101 } }, 'limits'],
    [{ limits: { tokens_per_day: null } }, 'limits'],
    [{ scopes: ['admin'] }, 'scopes'],
    [{ scopes: ['keys', 'models'] }, 'scopes'],
    [{ tenant: 'own-other' }, 'tenant'],
  ])('a key cannot grant %j if it lacks that itself', async (fields, param) => {
    const own = { models: ['org/tiny'], limits: { tokens_per_day: 100 }, expires_at: 4_000_000_000 };
    const { key: manager } = await managed(`own-grant-${crypto.randomUUID()}`, own);
    const { status, body } = await call(manager, 'POST', '/keys', { name: 'web', ...fields });
    expect([status, body.error.param]).toEqual([400, param]);
    const { body: child } = await call(manager, 'POST', '/keys', { name: 'web' });
    expect(child).toMatchObject({ ...own, models: ['org/tiny'] });
  });

  test('whatever is granted, nobody gets more than the granting key has', () => {
    const maybe = fc.option(fc.integer({ min: 1, max: 5 }));
    const models = fc.option(fc.subarray(['a', 'b', 'c'], { minLength: 1 }));
    fc.assert(
      fc.property(maybe, maybe, models, models, maybe, maybe, (mine, theirs, own, wanted, end, expiry) => {
        const key = {
          ...{ id: 'k', tenantId: 't', name: 'k', scopes: ['keys'] as const, role: null, revokedAt: null },
          ...{ models: own, expiresAt: end && end * 1000, limits: { ...UNLIMITED, tokensPerDay: mine } },
        };
        const within = (limit: number | null, most: number | null) =>
          most === null || (limit !== null && limit <= most);
        const fits =
          (own === null || wanted?.every((model) => own.includes(model)) === true) &&
          within(expiry, end) &&
          within(theirs, mine);
        const terms = { models: wanted, expires_at: expiry, limits: { tokens_per_day: theirs } };
        if (fits) expect(() => checkGrant(terms, key)).not.toThrow();
        else expect(() => checkGrant(terms, key)).toThrow(/^Invalid '/);
        const record = {
          ...{ ...key, scopes: ['completions'] as const, models: wanted, hash: '', createdAt: 0 },
          ...{ expiresAt: expiry && expiry * 1000, disabled: false, replacedBy: null },
          limits: theirs === null ? {} : { tokensPerDay: theirs },
        };
        if (fits) expect(() => checkHolds(record, key)).not.toThrow();
        else expect(() => checkHolds(record, key)).toThrow(/^Invalid '/);
      }),
    );
  });
});

describe('own usage', () => {
  test('shows what the account used, of no other account, as JSON and CSV', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'own-usage');
    const other = await tenantWithKey(worker, 'own-usage-other');
    for (const one of [key, key, other.key]) expect((await completion(worker, one)).status).toBe(200);
    await expect.poll(async () => (await call(key, 'GET', '/usage')).body.total.requests).toBe(2);
    const { body } = await call(key, 'GET', '/usage?group_by=key');
    expect(body.data).toMatchObject([{ key: keyId, requests: 2, completed: 2 }]);
    const csv = await worker.request('/v1/usage?group_by=key&format=csv', {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [names, row, end] = (await csv.text()).split('\r\n').map((line) => line.split(','));
    expect(Object.fromEntries(names!.map((name, i) => [name, row![i]]))).toMatchObject({
      key: keyId,
      requests: '2',
    });
    expect(end).toEqual(['']);
    expect((await call(key, 'GET', '/usage?tenant=own-usage-other')).status).toBe(400);
  });

  test('any key sees itself and the limits of its account, but no managing key’s secret', async () => {
    const { key, keyId } = await managed('own-key', { limits: { requests_per_minute: 5 } });
    const { body } = await call(key, 'GET', '/key');
    expect(body).toMatchObject({
      ...{ object: 'key', id: keyId, scopes: ['keys'] },
      limits: { requests_per_minute: 5, tokens_per_minute: null },
      tenant: { id: 'own-key', limits: { tokens_per_minute: 50_000 } },
    });
  });
});
