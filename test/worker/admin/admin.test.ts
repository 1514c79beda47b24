import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { readKeyRecord, replaceKey, revokeKey } from '../../../worker/tenants/key-store.ts';
import { ENTRY } from '../support/audit-entry.ts';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';
import {
  ADMIN_KEY,
  ADMIN_KEY_SHA256,
  type AnswerBody,
  admin,
  completion,
  tenantWithKey,
} from './admin-client.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const log = new WorkerdLog(/"event":"key_store_failed"/);
const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256 }, { log });

describe('keys', () => {
  test('creates a key that works at once, and stores only its hash', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'keys-new');
    expect(key).toMatch(/^sk-[0-9A-Za-z]{12}-[0-9A-Za-z]{49}$/);
    expect((await completion(worker, key)).status).toBe(200);
    const { results } = await worker.database.prepare('SELECT * FROM keys WHERE id = ?').bind(keyId).all();
    expect(results).toEqual([expect.objectContaining({ hash: sha256(key) })]);
    expect(JSON.stringify(results)).not.toContain(key.slice(16));
    expect((await admin(worker, 'GET', `/keys/${keyId}`)).body).not.toHaveProperty('key');
  });

  test('rejects a revoked key at once', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'keys-revoke');
    expect((await completion(worker, key)).status).toBe(200);
    expect((await admin(worker, 'DELETE', `/keys/${keyId}`)).body.revoked_at).toEqual(expect.any(Number));
    const refused = await completion(worker, key);
    expect(refused.status).toBe(401);
    expect(refused.body.error).toMatchObject({
      code: 'invalid_api_key',
      message: 'Incorrect API key provided.',
    });
    expect(refused.headers.get('www-authenticate')).toBe('Bearer');
  });

  test('rejects in the limiter a revoked key that a cache elsewhere still accepts', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'keys-elsewhere');
    expect((await completion(worker, key)).status).toBe(200);
    await admin(worker, 'DELETE', `/keys/${keyId}`);
    // Simulates a place with an outdated cache: the store calls the key valid again, and only the limiter
    // blocks it.
    await worker.database.prepare('UPDATE keys SET revoked_at = NULL WHERE id = ?').bind(keyId).run();
    expect((await completion(worker, key)).status).toBe(401);
  });

  test('keeps the settings on rotation, and accepts the old key only during the overlap', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'keys-rotate', {}, { models: ['org/tiny'] });
    const { body: next } = await admin(worker, 'POST', `/keys/${keyId}/rotate`, { overlap_seconds: 60 });
    expect(next).toMatchObject({ tenant: 'keys-rotate', models: ['org/tiny'], name: 'test' });
    expect((await completion(worker, key)).status).toBe(200);
    expect((await completion(worker, next.key)).status).toBe(200);
    expect((await admin(worker, 'GET', `/keys/${keyId}`)).body.replaced_by).toBe(next.id);
    const again = await admin(worker, 'POST', `/keys/${keyId}/rotate`, {});
    expect([again.status, again.body.error.code]).toEqual([409, 'conflict']);
    await admin(worker, 'POST', `/keys/${next.id}/rotate`, { overlap_seconds: 0 });
    expect((await completion(worker, next.key)).status).toBe(401);
  });

  test('does not replace a key that was replaced or revoked concurrently', async () => {
    const { keyId } = await tenantWithKey(worker, 'keys-race');
    const db = worker.database as unknown as D1Database;
    const old = (await readKeyRecord(db, keyId))!;
    const replace = (id: string) => replaceKey(db, old, { ...old, id }, old.createdAt + 60_000, ENTRY);
    expect([await replace('first'), await replace('second')]).toEqual([true, false]);
    expect(await readKeyRecord(db, keyId)).toMatchObject({ replacedBy: 'first' });
    await revokeKey(db, 'first', old.createdAt, ENTRY);
    const first = (await readKeyRecord(db, 'first'))!;
    expect(await replaceKey(db, { ...first, revokedAt: null }, { ...first, id: 'third' }, 0, ENTRY)).toBe(
      false,
    );
    expect((await admin(worker, 'GET', '/keys?tenant=keys-race')).body.data).toHaveLength(2);
  });

  test('rejects an expired key', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'keys-expired', {}, { expires_at: 4_000_000_000 });
    await worker.database.prepare(`UPDATE keys SET expires_at = 1 WHERE id = '${keyId}'`).run();
    expect((await completion(worker, key)).status).toBe(401);
  });

  test('does not create a key that has already expired', async () => {
    await tenantWithKey(worker, 'keys-past');
    const body = { tenant: 'keys-past', name: 'late', expires_at: 1_000_000_000 };
    const answer = await admin(worker, 'POST', '/keys', body);
    expect([answer.status, answer.body.error.param]).toEqual([400, 'expires_at']);
  });

  test('rejects a malformed key without a look-up, and an unknown key with one', async () => {
    const { key } = await tenantWithKey(worker, 'keys-malformed');
    const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
    const other = (await tenantWithKey(worker, 'keys-malformed-2')).key;
    await worker.database.prepare('ALTER TABLE keys RENAME TO hidden_keys').run();
    try {
      for (const wrong of ['sk-123', 'x', mistyped, `${key}0`]) {
        expect((await completion(worker, wrong)).status).toBe(401);
      }
      expect((await completion(worker, other)).status).toBe(503);
      await expect.poll(() => log.lines.length).toBe(1);
    } finally {
      await worker.database.prepare('ALTER TABLE hidden_keys RENAME TO keys').run();
    }
  });

  test('limits a key to its scopes and models', async () => {
    const { key } = await tenantWithKey(worker, 'keys-scopes', {}, { scopes: ['models'] });
    expect((await completion(worker, key)).body.error.code).toBe('insufficient_scope');
    const { key: narrow } = await tenantWithKey(worker, 'keys-models', {}, { models: ['other'] });
    expect((await completion(worker, narrow)).body.error.code).toBe('model_not_found');
    const { key: named } = await tenantWithKey(worker, 'keys-default', {}, { models: ['default'] });
    expect((await completion(worker, named)).status).toBe(200);
  });

  test('rejects a suspended tenant at once, and accepts it again after resumption', async () => {
    const { key } = await tenantWithKey(worker, 'keys-suspended');
    expect((await completion(worker, key)).status).toBe(200);
    await admin(worker, 'PATCH', '/tenants/keys-suspended', { suspended: true });
    expect((await completion(worker, key)).body.error.code).toBe('tenant_suspended');
    // This request does not reach a limiter.
    const models = await worker.request('/v1/models', { headers: { authorization: `Bearer ${key}` } });
    expect(models.status).toBe(403);
    await admin(worker, 'PATCH', '/tenants/keys-suspended', { suspended: false });
    expect((await completion(worker, key)).status).toBe(200);
  });
});

describe('plans and tenants', () => {
  test('takes limits from the plan, except for the tenant’s own limits', async () => {
    const limits = { requests_per_minute: 7, tokens_per_minute: 1000 };
    expect((await admin(worker, 'POST', '/plans', { id: 'small', name: 'Small', limits })).status).toBe(201);
    await admin(worker, 'POST', '/tenants', {
      id: 'planned',
      name: 'Planned',
      plan: 'small',
      limits: { requests_per_minute: 5 },
    });
    const { body } = await admin(worker, 'POST', '/keys', { tenant: 'planned', name: 'k' });
    const { headers } = await completion(worker, body.key);
    expect(headers.get('x-ratelimit-limit-requests')).toBe('5');
    expect(headers.get('x-ratelimit-limit-tokens')).toBe('1000');
  });

  test('removes a plan only if no tenant has it, with an entry in the audit log', async () => {
    await admin(worker, 'POST', '/plans', { id: 'leaving', name: 'Leaving' });
    await admin(worker, 'POST', '/tenants', { id: 'leaver', name: 'Leaver', plan: 'leaving' });
    const refused = await admin(worker, 'DELETE', '/plans/leaving');
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict']);
    await admin(worker, 'PATCH', '/tenants/leaver', { plan: null });
    expect((await admin(worker, 'DELETE', '/plans/leaving')).body.name).toBe('Leaving');
    expect((await admin(worker, 'DELETE', '/plans/leaving')).status).toBe(404);
    expect((await admin(worker, 'GET', '/audit?action=removePlan')).body.data).toHaveLength(1);
  });

  test("a schema's objects are as the tenant's record says, in every API", async () => {
    const { key } = await tenantWithKey(worker, 'loose');
    await admin(worker, 'PATCH', '/tenants/loose', { open_objects: true, any_key_order: true });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'default', prompt: 'x', json_schema: {} });
    for (const path of ['/v1/completions', '/completion']) {
      await worker.request(path, { method: 'POST', headers, body });
      const style = { openObjects: true, anyKeyOrder: true };
      expect(origin.requests.at(-1)?.constraint, path).toMatchObject(style);
    }
  });

  test('keeps concurrent changes of different fields, including a suspension', async () => {
    const { key } = await tenantWithKey(worker, 'at-once');
    await admin(worker, 'POST', '/plans', { id: 'at-once', name: 'Before' });
    const ofTenant = [{ name: 'After' }, { suspended: true }, { weight: 3 }, { plan: 'at-once' }];
    const ofPlan = [
      { name: 'After' },
      { weight: 2 },
      { limits: { max_tokens: 9 } },
      { limits: { tokens_per_day: 8 } },
    ];
    const all = [
      ...ofTenant.map((body) => ({ path: '/tenants/at-once', body })),
      ...ofPlan.map((body) => ({ path: '/plans/at-once', body })),
    ];
    await Promise.all(all.map(({ path, body }) => admin(worker, 'PATCH', path, body)));
    for (const { path, body } of all) expect((await admin(worker, 'GET', path)).body).toMatchObject(body);
    expect((await completion(worker, key)).body.error.code).toBe('tenant_suspended');
    const { body } = await admin(worker, 'PATCH', '/tenants/at-once', { plan: null, weight: null });
    expect(body).toMatchObject({ plan: null, weight: null, name: 'After', suspended: true });
  });

  test('shows every record once on pages of any size, and marks the last page', async () => {
    for (const id of ['page-a', 'page-b', 'page-c', 'page-d'])
      await admin(worker, 'POST', '/tenants', { id, name: id });
    const all = (await admin(worker, 'GET', '/tenants?limit=1000')).body.data.map(({ id }) => id);
    expect(all).toEqual(expect.arrayContaining(['page-a', 'page-b', 'page-c', 'page-d']));
    for (const limit of [1, 3, all.length - 1, all.length, all.length + 1]) {
      const pages: AnswerBody[] = [];
      do {
        const after = pages.at(-1)?.data.at(-1)?.id ?? '';
        pages.push((await admin(worker, 'GET', `/tenants?limit=${limit}&after=${after}`)).body);
      } while (pages.at(-1)?.has_more);
      expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual(all);
      expect(pages).toHaveLength(Math.ceil(all.length / limit));
    }
  });

  test.each([
    ['/tenants', { name: '' }, 400, 'name'],
    ['/tenants', {}, 400, 'name'],
    ['/tenants', { name: 'x', plan: 'nope' }, 400, 'plan'],
    ['/tenants', { name: 'x', limits: { requests_per_hour: 1 } }, 400, 'limits.requests_per_hour'],
    ['/tenants', { name: 'x', limits: { requests_per_minute: 0 } }, 400, 'limits.requests_per_minute'],
    ['/tenants', { id: 'development', name: 'x' }, 409, 'id'],
    ['/keys', { tenant: 'nope', name: 'x' }, 400, 'tenant'],
    ['/keys', { tenant: 'operator', name: 'x', scopes: ['admin', 'models'] }, 400, 'scopes'],
    ['/keys', { tenant: 'page-a', name: 'x', scopes: ['admin'] }, 400, 'scopes'],
  ])('rejects POST %s %j with the name of the field', async (path, body, status, param) => {
    const answer = await admin(worker, 'POST', path, body);
    expect([answer.status, answer.body.error.param]).toEqual([status, param]);
  });
});

describe('access to the admin API', () => {
  test('accepts only admin keys on every admin route and method', async () => {
    const { key: completions } = await tenantWithKey(worker, 'strangers');
    const { body: document } = await admin(worker, 'GET', '/openapi.json');
    const paths = Object.keys(document.paths).map((path) => path.replace('{id}', 'strangers'));
    expect(paths.length).toBeGreaterThanOrEqual(8);
    const variants = [...paths, '/admin/v1/openapi.json'].flatMap((path) => [path, `${path}/`, `/${path}`]);
    for (const path of variants) {
      for (const method of ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS']) {
        for (const authorization of [`Bearer ${completions}`, 'Bearer wrong', '']) {
          const { status } = await worker.request(path, { method, headers: { authorization } });
          expect([401, 403, 404, 405], `${method} ${path}`).toContain(status === 204 ? 405 : status);
        }
      }
    }
    expect((await admin(worker, 'GET', '/tenants/strangers')).body.name).toBe('strangers');
  });

  test('accepts an operator’s admin key until its revocation, but not for completions', async () => {
    const { body } = await admin(worker, 'POST', '/keys', {
      tenant: 'operator',
      name: 'second',
      scopes: ['admin'],
    });
    expect((await admin(worker, 'GET', '/plans', undefined, body.key)).status).toBe(200);
    expect((await completion(worker, body.key)).body.error.code).toBe('insufficient_scope');
    await admin(worker, 'DELETE', `/keys/${body.id}`, undefined, body.key);
    expect((await admin(worker, 'GET', '/plans', undefined, body.key)).status).toBe(401);
  });

  test('rejects the bootstrap key for completions, and accepts the development key for both', async () => {
    expect((await completion(worker, ADMIN_KEY)).body.error.code).toBe('insufficient_scope');
    expect((await admin(worker, 'GET', '/plans', undefined, KEY)).status).toBe(200);
  });
});

test.each([
  ['POST', '/tenants', { id: 'A B', name: 'x' }, 'id', 'at most 63 lower-case letters, digits and hyphens'],
  ['POST', '/keys', { tenant: 'acme', name: 'x', role: 'A B' }, 'role', "'owner', 'billing', 'read-only'"],
  [
    'POST',
    '/keys',
    { tenant: 'a', name: 'x', allowed_addresses: ['A B'] },
    'allowed_addresses[0]',
    'an IPv4',
  ],
  ['PUT', '/upstreams/fra', { kind: 'origin', url: 'A B' }, 'url', 'an address such as http://10.0.0.8:9100'],
  ['GET', '/audit?from=A+B', undefined, 'from', 'a day such as 2026-11-30'],
  ['GET', '/prices?after=A+B', undefined, 'after', 'the last id of a page'],
] as const)('%s %s: says of a text of the wrong form what is expected and received', async (...row) => {
  const [method, path, body, param, expected] = row;
  const { status, body: answer } = await admin(worker, method, path, body);
  expect([status, answer.error.param]).toEqual([400, param]);
  expect(answer.error.message).toContain(`Invalid '${param}': expected ${expected}`);
  expect(answer.error.message).toContain('but got a string ("A B") instead.');
});
