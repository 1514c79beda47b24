import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toSnakeCase } from '../../../shared/field-names.ts';
import { limits, UNLIMITED } from '../../../shared/tenant.ts';
import { checkGrant, checkHolds } from '../../../worker/account/grant.ts';
import { type AnswerBody, admin, completion, tenantWithKey } from '../admin/admin-client.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';
import { accountAt } from './account-client.ts';

const { worker } = sharedWorker();
const call = accountAt(worker);

/** A tenant with a key that manages keys. */
const managed = (id: string, key: Readonly<Record<string, unknown>> = {}) =>
  tenantWithKey(worker, id, { tokens_per_minute: 50_000 }, { scopes: ['keys'], ...key });

describe('own keys', () => {
  test('a managing key creates, lists, changes, rotates and ends keys, and generates nothing itself', async () => {
    const { key: manager, keyId } = await managed('own-cycle');
    expect((await completion(worker, manager)).body.error.code).toBe('insufficient_scope');
    const made = await call(manager, 'POST', '/keys', { name: 'web', limits: { requests_per_minute: 3 } });
    expect(made.status).toBe(201);
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

  test('a managing key can rotate itself, and has no more than before', async () => {
    const { key: manager, keyId } = await managed('own-rotation', { models: ['org/tiny'] });
    const { status, body } = await call(manager, 'POST', `/keys/${keyId}/rotate`, { overlap_seconds: 0 });
    expect([status, body]).toMatchObject([201, { scopes: ['keys'], models: ['org/tiny'] }]);
    expect((await call(manager, 'GET', '/keys')).status).toBe(401);
    expect((await call(body.key, 'GET', '/keys')).status).toBe(200);
  });

  test.each([
    ['GET', '/keys?limit=abc', undefined, 'limit', 'expected an integer, but got a string ("abc") instead.'],
    ['GET', '/keys?limit=', undefined, 'limit', 'expected an integer, but got a string ("") instead.'],
    ['GET', '/keys?limit=1.5', undefined, 'limit', 'expected an integer, but got a string ("1.5") instead.'],
    ['GET', '/keys?limit=0', undefined, 'limit', 'Expected a value >= 1, but got 0 instead.'],
    [
      'POST',
      '/keys',
      { name: 'x', expires_at: 1_900_000_000_000 },
      'expires_at',
      'but got 1900000000000 instead.',
    ],
  ])('%s %s with %j is refused with what was received', async (method, path, sent, param, message) => {
    const { key } = await managed(`own-refused-${path.replaceAll(/\W/g, '')}`);
    const { status, body } = await call(key, method, path, sent);
    expect([status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toContain(message);
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

  test.each([
    [{ models: ['org/tiny'] }, 'models'],
    [{ limits: { tokens_per_day: 100 } }, 'limits'],
    [{ expires_at: 4_000_000_000 }, 'expires_at'],
  ])('a key with %j changes no key that has more, but disables and ends it', async (own, param) => {
    const tenant = `own-wider-${param.replace('_', '-')}`;
    const { key: manager } = await managed(tenant, own);
    const wide = (await admin(worker, 'POST', '/keys', { tenant, name: 'wide' })).body;
    const change = async (body: object) => {
      const answer = await call(manager, 'PATCH', `/keys/${wide.id}`, body);
      return [answer.status, answer.body.error?.param];
    };
    for (const body of [{ limits: { requests_per_minute: 5 } }, { expires_at: 3_999_999_999 }])
      expect(await change(body)).toEqual([400, param]);
    expect(await change({ disabled: true })).toEqual([200, undefined]);
    expect(await change({ disabled: false })).toEqual([400, param]);
    expect(await change({ disabled: true, limits: { requests_per_minute: 5 } })).toEqual([400, param]);
    expect((await call(manager, 'DELETE', `/keys/${wide.id}`)).status).toBe(200);
  });

  test('metadata is kept, changed as a whole without a new key, and copied by a rotation', async () => {
    const { key: manager } = await managed('own-metadata');
    const metadata = { team: 'search', 'cost center': '17' };
    const { body: made } = await call(manager, 'POST', '/keys', { name: 'web', metadata });
    expect(made).toMatchObject({ metadata });
    expect((await call(manager, 'PATCH', `/keys/${made.id}`, { name: 'site' })).body).toMatchObject({
      metadata,
    });
    const changed = await call(manager, 'PATCH', `/keys/${made.id}`, { metadata: { team: 'ads' } });
    expect(changed.body).toMatchObject({ name: 'site', metadata: { team: 'ads' } });
    const next = await call(manager, 'POST', `/keys/${made.id}/rotate`, {});
    expect(next.body).toMatchObject({ metadata: { team: 'ads' } });
    const shown = await call(manager, 'PATCH', `/keys/${next.body.id}`, { metadata: null });
    expect(shown.body).toMatchObject({ metadata: null });
    expect((await completion(worker, made.key)).status).toBe(200);
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [index, '']));
    for (const wrong of [many, { a: 1 }, { ['x'.repeat(65)]: '' }, { a: 'x'.repeat(513) }]) {
      const { status, body } = await call(manager, 'POST', '/keys', { name: 'web', metadata: wrong });
      expect([status, body.error.param?.split('.')[0]]).toEqual([400, 'metadata']);
    }
  });

  test('whatever is granted, nobody gets more than the granting key has', () => {
    const maybe = fc.option(fc.integer({ min: 1, max: 5 }));
    const models = fc.option(fc.subarray(['a', 'b', 'c'], { minLength: 1 }));
    const networks = fc.option(fc.subarray(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7'], { minLength: 1 }));
    const limit = fc.constantFrom(...(Object.keys(limits.shape) as (keyof typeof limits.shape)[]));
    const pair = <T>(one: fc.Arbitrary<T>) => fc.tuple(one, one);
    const terms = [limit, pair(maybe), pair(models), pair(maybe), pair(networks)] as const;
    fc.assert(
      fc.property(...terms, (name, [mine, theirs], [own, wanted], [end, expiry], [allowed, ranges]) => {
        const key = {
          id: 'k',
          tenantId: 't',
          name: 'k',
          scopes: ['keys'] as const,
          role: null,
          revokedAt: null,
          allowedAddresses: allowed,
          metadata: null,
          models: own,
          expiresAt: end && end * 1000,
          limits: { ...UNLIMITED, [name]: mine },
        };
        const within = (limit: number | null, most: number | null) =>
          most === null || (limit !== null && limit <= most);
        const fits =
          (own === null || wanted?.every((model) => own.includes(model)) === true) &&
          (allowed === null || ranges?.every((range) => allowed.includes(range)) === true) &&
          within(expiry, end) &&
          within(theirs, mine);
        const asked = {
          models: wanted,
          expires_at: expiry,
          allowed_addresses: ranges,
          limits: toSnakeCase({ [name]: theirs }),
        };
        if (fits) expect(() => checkGrant(asked, key)).not.toThrow();
        else expect(() => checkGrant(asked, key)).toThrow(/^Invalid '/);
        const record = {
          ...key,
          scopes: ['completions'] as const,
          models: wanted,
          hash: '',
          createdAt: 0,
          expiresAt: expiry && expiry * 1000,
          disabled: false,
          replacedBy: null,
          allowedAddresses: ranges,
          limits: theirs === null ? {} : { [name]: theirs },
        };
        if (fits) expect(() => checkHolds(record, key)).not.toThrow();
        else expect(() => checkHolds(record, key)).toThrow(/^Invalid '/);
      }),
    );
  });

  test('any key sees itself and the limits of its account, but no managing key’s secret', async () => {
    const { key, keyId } = await managed('own-key', { limits: { requests_per_minute: 5 } });
    const { body } = await call(key, 'GET', '/key');
    expect(body).toMatchObject({
      object: 'key',
      id: keyId,
      scopes: ['keys'],
      limits: { requests_per_minute: 5, tokens_per_minute: null },
      tenant: { id: 'own-key', limits: { tokens_per_minute: 50_000 } },
    });
  });
});

describe('keys', () => {
  test('tell the last day of use, and null before it', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'own-last-use');
    const used = async () =>
      (await admin(worker, 'GET', `/keys/${keyId}`)).body as unknown as { last_used_at: number };
    expect((await used()).last_used_at).toBeNull();
    await completion(worker, key);
    const today = Date.parse(new Date().toISOString().slice(0, 10)) / 1000;
    await expect.poll(async () => (await used()).last_used_at).toBeGreaterThanOrEqual(today - 86_400);
    const { last_used_at } = await used();
    expect((await call(key, 'GET', '/key')).body).toMatchObject({ last_used_at });
    const { body } = await admin(worker, 'GET', '/keys?tenant=own-last-use');
    expect(body.data).toMatchObject([await used()]);
  });

  test('work only from their networks, also for streams that can be resumed', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'own-networks');
    const from = async (address: string, fields: Readonly<Record<string, unknown>> = {}) => {
      const response = await worker.post(
        { model: 'default', prompt: 'Hi', max_tokens: 2, ...fields },
        {
          headers: {
            authorization: `Bearer ${key}`,
            'cf-connecting-ip': address,
            ...(fields.stream === true && { 'x-resumable': 'true' }),
          },
        },
      );
      return [response.status, /address_not_allowed/.test(await response.text())];
    };
    expect(await from('203.0.113.9')).toEqual([200, false]);
    const allowed_addresses = ['203.0.113.0/28', '2001:db8:1::/48', '198.51.100.7'];
    const changed = await admin(worker, 'PATCH', `/keys/${keyId}`, { allowed_addresses });
    expect(changed.body).toMatchObject({ allowed_addresses });
    for (const inside of ['203.0.113.9', '198.51.100.7', '2001:db8:1:2::3', '::ffff:203.0.113.1'])
      expect(await from(inside, { stream: true }), inside).toEqual([200, false]);
    for (const outside of ['203.0.113.16', '198.51.100.8', '2001:db8:2::1', 'unknown', ''])
      expect(await from(outside), outside).toEqual([403, true]);
    await admin(worker, 'PATCH', `/keys/${keyId}`, { allowed_addresses: null });
    expect(await from('192.0.2.1')).toEqual([200, false]);
  });

  test.each([[['203.0.113.0/33']], [['example.com']], [['10.0.0.1', '']], [[]]])(
    'cannot have the networks %j',
    async (allowed_addresses) => {
      await tenantWithKey(worker, 'own-bad-networks');
      const body = { tenant: 'own-bad-networks', name: 'x', allowed_addresses };
      const { status, body: answer } = await admin(worker, 'POST', '/keys', body);
      expect([status, answer.error.param?.split('[')[0]]).toEqual([400, 'allowed_addresses']);
    },
  );

  test('cannot grant networks outside of their own', async () => {
    const { key } = await tenantWithKey(
      worker,
      'own-grant-networks',
      {},
      {
        scopes: ['keys'],
        allowed_addresses: ['10.0.0.0/8'],
      },
    );
    const make = async (fields: object) => {
      const response = await worker.postTo(
        '/v1/keys',
        { name: 'child', ...fields },
        { authorization: `Bearer ${key}`, 'cf-connecting-ip': '10.1.2.3' },
      );
      return (await response.json()) as AnswerBody;
    };
    expect(await make({})).toMatchObject({ allowed_addresses: ['10.0.0.0/8'] });
    expect(await make({ allowed_addresses: ['10.9.0.0/16'] })).toMatchObject({
      allowed_addresses: ['10.9.0.0/16'],
    });
    for (const ranges of [['10.0.0.0/7'], ['10.0.0.1', '192.0.2.0/24'], ['::/0']])
      expect((await make({ allowed_addresses: ranges })).error.param).toBe('allowed_addresses');
  });
});
