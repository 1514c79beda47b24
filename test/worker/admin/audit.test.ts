import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { workerForTests } from '../support/worker-for-tests.ts';
import { ADMIN_KEY, ADMIN_KEY_SHA256, type AnswerBody, admin, tenantWithKey } from './admin-client.ts';

const { worker } = workerForTests({ ADMIN_KEY_SHA256, WEBHOOK_SECRET: 'a secret for the webhooks of tests' });

interface Entry {
  readonly id: string;
  readonly key: string;
  readonly key_tenant: string;
  readonly address: string | null;
  readonly request_id: string;
  readonly action: string;
  readonly target: string;
  readonly tenant: string | null;
  readonly changes: Readonly<Record<string, unknown>>;
}

const entriesOf = async (query = '', key = ADMIN_KEY): Promise<Entry[]> => {
  const { body } = await admin(worker, 'GET', `/audit?limit=1000&${query}`, undefined, key);
  return body.data as unknown as Entry[];
};

/** Sends a change whose request id is known. */
async function change(
  path: string,
  method: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  const id = crypto.randomUUID();
  const response = await worker.request(path, {
    method,
    headers: {
      authorization: `Bearer ${ADMIN_KEY}`,
      'content-type': 'application/json',
      'x-request-id': id,
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { id, ok: response.ok, body: (await response.json()) as AnswerBody };
}

describe('the audit log', () => {
  test('has exactly one entry for each change that was made, and none for one that was not', async () => {
    const name = fc.constantFrom('audit-a', 'audit-b');
    const action = fc.oneof(
      fc.record({ path: fc.constant('/plans'), method: fc.constant('POST'), id: name }),
      fc.record({ path: fc.constant('/plans/'), method: fc.constant('PATCH'), id: name }),
      fc.record({ path: fc.constant('/tenants'), method: fc.constant('POST'), id: name }),
      fc.record({ path: fc.constant('/tenants/'), method: fc.constant('PATCH'), id: name }),
      fc.record({ path: fc.constant('/keys'), method: fc.constant('POST'), id: name }),
      fc.record({ path: fc.constant('/keys/'), method: fc.constant('PATCH'), id: name }),
      fc.record({ path: fc.constant('/keys/'), method: fc.constant('DELETE'), id: name }),
      fc.record({ path: fc.constant('/rotate'), method: fc.constant('POST'), id: name }),
    );
    const keys = new Map<string, string>();
    const made: string[] = [];
    const run = async ({ path, method, id }: { path: string; method: string; id: string }) => {
      const keyId = keys.get(id) ?? 'none';
      const [to, body] =
        path === '/rotate'
          ? [`/keys/${keyId}/rotate`, { overlap_seconds: 9 }]
          : path === '/keys/'
            ? [`/keys/${keyId}`, method === 'PATCH' ? { limits: { max_tokens: 3 } } : undefined]
            : path.endsWith('/')
              ? [path + id, { name: 'new' }]
              : [path, path === '/keys' ? { tenant: id, name: 'k' } : { id, name: 'n' }];
      const done = await change(`/admin/v1${to}`, method, body);
      if (done.ok) made.push(done.id);
      if (path === '/keys' && done.ok) keys.set(id, done.body.id);
    };
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 2, maxLength: 12 }), async (actions) => {
        // Pairs run at the same time.
        for (let at = 0; at < actions.length; at += 2)
          await Promise.all(actions.slice(at, at + 2).map((one) => run(one)));
      }),
      { numRuns: 25 },
    );
    const found = (await entriesOf()).map(({ request_id }) => request_id);
    expect(made.length).toBeGreaterThan(20);
    expect(found.filter((id) => made.includes(id)).toSorted()).toEqual(made.toSorted());
    const others = found.filter((id) => !made.includes(id));
    expect(others).toEqual([]);
  });

  test('says who changed what from where, without secrets, also for keys of an account', async () => {
    const { key: manager, keyId } = await tenantWithKey(worker, 'audit-own', {}, { scopes: ['keys'] });
    const headers = { authorization: `Bearer ${manager}`, 'cf-connecting-ip': '2001:db8::7' };
    const { id, body } = await change(
      '/v1/keys',
      'POST',
      { name: 'web', limits: { max_tokens: 5 } },
      headers,
    );
    const [made] = await entriesOf(`tenant=audit-own&key=${keyId}&action=createKey`);
    expect(made).toMatchObject({
      key: keyId,
      key_tenant: 'audit-own',
      address: '2001:db8::7',
      request_id: id,
      action: 'createKey',
      target: body.id,
      tenant: 'audit-own',
      changes: { name: 'web', limits: { max_tokens: 5 }, scopes: ['completions', 'models'] },
    });
    expect(JSON.stringify(await entriesOf('tenant=audit-own'))).not.toContain(body.key.slice(16));
    const actions = (await entriesOf('tenant=audit-own')).map(({ action }) => action);
    expect(actions).toEqual(['createKey', 'createKey', 'createTenant']);
  });

  test('has one entry for each price, payment, webhook and replay, and none for a payment that is sent twice', async () => {
    await tenantWithKey(worker, 'audit-paid');
    const paid = { tenant: 'audit-paid', id: 'p1', micros: 7 };
    await admin(worker, 'POST', '/prices', { model: 'audited', prompt_micros: 1, completion_micros: 2 });
    for (const count of [1, 2])
      expect((await admin(worker, 'POST', '/credits', paid)).status, `${count}`).toBe(201);
    await admin(worker, 'POST', '/webhooks', { tenant: 'audit-paid', url: null });
    await admin(worker, 'POST', '/events/audit-paid/replay');
    const entries = await entriesOf('tenant=audit-paid');
    expect(entries.map(({ action, target }) => [action, target])).toEqual([
      ['replayEvent', 'audit-paid'],
      ['createWebhook', 'audit-paid'],
      ['createCredit', 'p1'],
      ['createKey', expect.any(String)],
      ['createTenant', 'audit-paid'],
    ]);
    expect(await entriesOf('action=createPrice')).toMatchObject([
      { target: 'audited', tenant: null, changes: { completion_micros: 2 } },
    ]);
  });

  test('has scheme, host and port of a webhook, and nothing else of its address', async () => {
    await tenantWithKey(worker, 'audit-hook');
    const url = 'https://hooks.example.com:8443/T0/path-secret?token=query-secret#end';
    const { body } = await admin(worker, 'POST', '/webhooks', { tenant: 'audit-hook', url });
    expect(body).toMatchObject({ url });
    const [entry] = await entriesOf('tenant=audit-hook&action=createWebhook');
    expect(entry!.changes).toEqual({ tenant: 'audit-hook', url: 'https://hooks.example.com:8443' });
  });

  test('cannot be changed, and a change that cannot be recorded is not made', async () => {
    await tenantWithKey(worker, 'audit-kept');
    for (const sql of ['DELETE FROM audit', "UPDATE audit SET target = 'x', changes = NULL, address = NULL"])
      await expect(worker.database.prepare(sql).run()).rejects.toThrow('append-only');
    await worker.database.prepare('ALTER TABLE audit RENAME TO hidden').run();
    try {
      const { ok } = await change('/admin/v1/tenants/audit-kept', 'PATCH', { name: 'Lost' });
      expect(ok).toBe(false);
    } finally {
      await worker.database.prepare('ALTER TABLE hidden RENAME TO audit').run();
    }
    expect((await admin(worker, 'GET', '/tenants/audit-kept')).body.name).toBe('audit-kept');
  });

  test('is searched in targets and new values, with ASCII letters of either case', async () => {
    await admin(worker, 'POST', '/plans', { id: 'searched', name: 'Ölmühle "Nord" ÄRA' });
    const found = async (text: string) =>
      (await admin(worker, 'GET', `/audit?search=${encodeURIComponent(text)}`)).body.data.length;
    for (const text of ['SEARCHED', 'mÜHLE'.replace('Ü', 'ü'), 'ÄRa', 'ölmühle "']) {
      const count = text === 'ölmühle "' ? 0 : 1;
      expect(await found(text), text).toBe(count);
    }
    expect(await found('%')).toBe(0);
  });

  test('shows every entry once on pages, new ones first', async () => {
    for (let count = 0; count < 3; count += 1)
      await change('/admin/v1/tenants', 'POST', { id: `audit-page-${count}`, name: 'n' });
    const all = await entriesOf();
    const paged: string[] = [];
    for (let after = ''; ; after = paged.at(-1)!) {
      const { body } = await admin(worker, 'GET', `/audit?limit=2&after=${after}`);
      paged.push(...body.data.map(({ id }) => id));
      if (!body.has_more) break;
    }
    expect(paged).toEqual(all.map(({ id }) => id));
    expect(all[0]).toMatchObject({ target: 'audit-page-2' });
    expect((await admin(worker, 'GET', '/audit?after=x')).status).toBe(400);
  });
});

/** A new admin key with a role. */
const keyOf = async (role: string | null): Promise<string> =>
  (await admin(worker, 'POST', '/keys', { tenant: 'operator', name: 'r', scopes: ['admin'], role })).body.key;

describe('roles of admin keys', () => {
  test('each role may call exactly the operations that are its own', async () => {
    await tenantWithKey(worker, 'roles');
    const { body } = await admin(worker, 'GET', '/openapi.json');
    const operations = Object.entries(body.paths as Record<string, Record<string, { operationId: string }>>)
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, one]) => ({ path, method, ...one })),
      )
      .filter(({ method }) => method !== 'delete');
    const refusedTo = async (key: string) => {
      const refused: string[] = [];
      for (const { path, method, operationId } of operations) {
        const response = await worker.request(path.replace('{id}', 'none'), {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${key}` },
        });
        if (response.status === 403) refused.push(operationId);
      }
      return refused;
    };
    expect(await refusedTo(await keyOf(null))).toEqual([]);
    expect(await refusedTo(await keyOf('owner'))).toEqual([]);
    const writes = [
      'createPlan',
      'changePlan',
      'createTenant',
      'changeTenant',
      'createKey',
      'changeKey',
      'rotateKey',
      'setUpstream',
    ];
    const money = ['createPrice', 'createCredit', 'replayEvent'];
    const webhooks = ['createWebhook', 'showWebhook'];
    expect((await refusedTo(await keyOf('read-only'))).toSorted()).toEqual(
      [...writes, ...money, ...webhooks].toSorted(),
    );
    const keys = ['createTenant', 'createKey', 'changeKey', 'rotateKey', 'setUpstream'];
    expect((await refusedTo(await keyOf('billing'))).toSorted()).toEqual([...keys, ...webhooks].toSorted());
    const others = ['listPlans', 'createPlan', 'showPlan', 'changePlan', 'listTenants', 'createTenant'];
    const lists = [
      'listPrices',
      'listCredits',
      'showBalance',
      'listEvents',
      'listUpstreams',
      'listActivity',
      'setUpstream',
    ];
    expect((await refusedTo(await keyOf('tenant:roles'))).toSorted()).toEqual(
      [...others, ...money, ...webhooks, ...lists].toSorted(),
    );
  });

  test('a key of one tenant sees and changes nothing of another', async () => {
    const mine = await tenantWithKey(worker, 'role-mine');
    const other = await tenantWithKey(worker, 'role-other');
    const key = await keyOf('tenant:role-mine');
    const call = (method: string, path: string, body?: unknown) => admin(worker, method, path, body, key);
    expect((await call('GET', '/tenants/role-mine')).status).toBe(200);
    expect((await call('PATCH', '/tenants/role-mine', { name: 'Mine' })).body.name).toBe('Mine');
    for (const field of [{ plan: null }, { limits: {} }, { weight: 2 }, { suspended: false }])
      expect((await call('PATCH', '/tenants/role-mine', field)).body.error).toMatchObject({
        code: 'insufficient_scope',
        param: Object.keys(field)[0],
      });
    expect((await call('GET', '/tenants/role-other')).status).toBe(404);
    expect((await call('PATCH', '/tenants/role-other', { name: 'x' })).status).toBe(404);
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', { name: 'x' }],
      ['POST', '/rotate', {}],
      ['DELETE', '', undefined],
    ] as const)
      expect((await call(method, `/keys/${other.keyId}${path}`, body)).status).toBe(404);
    const foreign = await call('POST', '/keys', { tenant: 'role-other', name: 'x' });
    expect([foreign.status, foreign.body.error.param]).toEqual([400, 'tenant']);
    const ids = (await call('GET', '/keys?tenant=role-other')).body.data.map(({ id }) => id);
    expect(ids).toEqual([mine.keyId]);
    const seen = await entriesOf('tenant=role-other', key);
    expect(new Set(seen.map(({ tenant }) => tenant))).toEqual(new Set(['role-mine']));
    expect((await call('DELETE', `/keys/${mine.keyId}`)).status).toBe(200);
  });

  test.each([
    [{ tenant: 'roles-bad', role: 'owner' }, 'role'],
    [{ tenant: 'operator', scopes: ['admin'], role: 'king' }, 'role'],
    [{ tenant: 'operator', scopes: ['admin'], role: 'tenant:' }, 'role'],
    [{ tenant: 'operator', scopes: ['admin'], role: 'tenant:operator' }, 'role'],
  ])('rejects a key with %j', async (fields, param) => {
    await tenantWithKey(worker, 'roles-bad');
    const { status, body } = await admin(worker, 'POST', '/keys', { name: 'x', ...fields });
    expect([status, body.error.param]).toEqual([400, param]);
  });

  test('a rotated key keeps its role, and older admin keys are owners', async () => {
    const { body } = await admin(worker, 'POST', '/keys', {
      tenant: 'operator',
      name: 'r',
      scopes: ['admin'],
      role: 'read-only',
    });
    const next = (await admin(worker, 'POST', `/keys/${body.id}/rotate`, {})).body;
    expect(next).toMatchObject({ role: 'read-only' });
    expect((await admin(worker, 'POST', '/plans', { id: 'p', name: 'p' }, next.key)).status).toBe(403);
  });
});
