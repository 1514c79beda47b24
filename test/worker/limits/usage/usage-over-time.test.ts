import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { ALL_SUMS, DAY_MS, dayName } from '../../../../worker/limits/usage/usage-sums.ts';
import { type Database, migrate } from '../../support/database.ts';
import { startWorkerd } from '../../support/workerd.ts';
import { type Call, callLimiter, LIMITER_WORKER } from '../objects/limiter-worker.ts';
import { recordOf } from './usage-fixtures.ts';

/** The ledger of a tenant's object over years: what its alarm does, and what it takes from older releases. */

const NOW = Date.now();

let workerd: Miniflare;
let db: Database;
beforeAll(async () => {
  const bindings = { USAGE_DAYS: '400', REQUEST_DAYS: '30' };
  ({ workerd, db } = await startWorkerd(LIMITER_WORKER, { LIMITER: 'TenantLimiter' }, undefined, bindings));
  await migrate(db);
});
afterAll(() => workerd?.dispose());

function limiterOf(tenant: string) {
  const call = (method: Call['method'], ...args: readonly unknown[]) =>
    callLimiter(workerd, { tenant, method, args });
  const request = async (requestId: string) => {
    const subjects = { tenantId: tenant, keyId: 'key', tenantLimits: UNLIMITED, keyLimits: UNLIMITED };
    await call('reserve', { requestId, model: 'tiny', tokens: 10, money: 0, ttlMs: 30_000, ...subjects }, []);
    const { status, usage, errorCode, finishReasons, upstream, latencyMs, firstTokenMs } = recordOf({});
    const settlement = { status, usage, errorCode, finishReasons, upstream, latencyMs, firstTokenMs };
    await call('settle', [{ requestId, settlement }]);
  };
  const find = async (name: string) =>
    (await call('ask', { kind: 'request', tenantId: tenant, name })) as { requestId: string } | null;
  const days = async () => {
    const rows = (await call('sums', tenant)) as { day: string; requests: number }[];
    return rows.map(({ day, requests }) => [day, requests]);
  };
  return { call, request, find, days };
}

/** Puts a tenant's usage where releases up to 0.2.0 had it. */
async function olderUsage(tenant: string): Promise<void> {
  const { call } = limiterOf(tenant);
  await call(
    'query',
    'CREATE TABLE outbox (sequence INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL)',
  );
  const record = (sequence: number) =>
    recordOf({
      tenantId: tenant,
      requestId: `i.0.${sequence}..r${sequence}`,
      startedAt: NOW - (sequence % 20) * DAY_MS,
    });
  for (const sequence of [5_005, 5_006, 5_007])
    await call('query', `INSERT INTO outbox VALUES (${sequence}, '${JSON.stringify(record(sequence))}')`);
  await call('restart');
  // The database has confirmed all but the last one.
  await db.prepare('INSERT INTO usage_cursors VALUES (?, 5006)').bind(tenant).run();
  const counters = ALL_SUMS.map((name) => (name === 'requests' ? 5_006 : 0));
  const put = (table: string, ...values: (string | number)[]) =>
    db
      .prepare(`INSERT INTO ${table} VALUES (${values.map(() => '?').join(', ')})`)
      .bind(...values)
      .run();
  const names = [tenant, '2025-12-31', 'tiny', 'key'];
  // The cost came with a later migration, at the end of the row.
  const cost = ALL_SUMS.indexOf('cost_micros');
  await put('usage_daily', ...names, ...counters.toSpliced(cost, 1), 0);
  const rows = Array.from({ length: 5_006 }, (_, index) => [
    `r${index + 1}`,
    index + 1,
    JSON.stringify(record(index + 1)),
  ]);
  await db
    .prepare(`
      INSERT INTO requests (tenant_id, request_id, sequence, started_at, record)
      SELECT ?, value->>0, value->>1, 0, value->>2 FROM json_each(?)`)
    .bind(tenant, JSON.stringify(rows))
    .run();
}

test('an object takes the usage of older releases over, once, also after failures and restarts', async () => {
  const { call, request, find, days } = limiterOf('older');
  await olderUsage('older');
  await request('i.0.9000..new');
  await db.prepare('ALTER TABLE requests RENAME TO away').run();
  await expect(days()).rejects.toThrow('no such table');
  await db.prepare('ALTER TABLE away RENAME TO requests').run();
  await call('restart');
  const expected = [
    ['2025-12-31', 5_006],
    [dayName(NOW - 7 * DAY_MS), 1],
    [expect.any(String), 1],
  ];
  expect(await days()).toEqual(expected);
  await call('restart');
  expect(await days()).toEqual(expected);
  const found = await Promise.all(['r1', 'r2500', 'r5006', 'r5007', 'new', 'none'].map(find));
  expect(found.map((record) => record?.requestId)).toEqual([
    'i.0.1..r1',
    'i.0.2500..r2500',
    'i.0.5006..r5006',
    'i.0.5007..r5007',
    'i.0.9000..new',
    undefined,
  ]);
});

const summaryOf = async (tenant: string) =>
  (await db.prepare('SELECT SUM(requests) AS sum FROM usage_summary WHERE tenant_id = ?').bind(tenant).all())
    .results[0];

const oldRowsOf = async (tenant: string) => {
  const counts = ['requests', 'usage_daily'].map((table) =>
    db.prepare(`SELECT COUNT(*) AS count FROM ${table} WHERE tenant_id = ?`).bind(tenant),
  );
  return (await db.batch<{ count: number }>(counts)).map(({ results: [row] }) => row!.count);
};

test('the usage of a tenant without new requests reaches the summary, and its single requests leave USAGE_DB', async () => {
  const { call, days } = limiterOf('dormant');
  await olderUsage('dormant');
  expect(await days()).toHaveLength(2);
  await call('pass', 300_000);
  await expect.poll(() => summaryOf('dormant')).toEqual({ sum: 5_007 });
  expect(await oldRowsOf('dormant')).toEqual([0, 1]);
});

test('an erasure reaches USAGE_DB, and keeps sums that an older release has kept there', async () => {
  const { call, days } = limiterOf('gone');
  await olderUsage('gone');
  // The older release has deleted the object.
  await call('query', 'DROP TABLE outbox');
  await call('restart');
  await call('erase', 'gone', 60_000, true);
  expect([await days(), await oldRowsOf('gone')]).toEqual([[['2025-12-01', 5_006]], [0, 0]]);
  await call('pass', 120_000);
  expect(await days()).toEqual([['2025-12-01', 5_006]]);
});

test('the daily work makes an object move what an older release has kept of an erased tenant, once', async () => {
  const { call, days } = limiterOf('kept');
  await olderUsage('kept');
  await call('query', 'DROP TABLE outbox');
  await call('restart');
  for (let run = 0; run < 2; run += 1) {
    await call('ask', { kind: 'move', tenantId: 'kept' });
    expect(await days()).toEqual([['2025-12-31', 5_006]]);
  }
});

test('the alarm deletes single requests after their days, and adds old days to their months', async () => {
  const { call, request, find, days } = limiterOf('aging');
  await request('i.0.1..first');
  const [[day]] = (await days()) as [[string, number]];
  const month = `${day.slice(0, 8)}01`;
  await call('pass', 30 * DAY_MS - 60_000);
  expect(await find('first')).toMatchObject({ requestId: 'i.0.1..first' });
  await call('pass', 2 * DAY_MS);
  expect([await find('first'), await days()]).toEqual([null, [[day, 1]]]);
  await call('pass', 360 * DAY_MS);
  expect(await days()).toEqual([[day, 1]]);
  await call('pass', 12 * DAY_MS);
  expect(await days()).toEqual([[month, 1]]);
  await call('pass', 300_000);
  const sql = "SELECT day, requests FROM usage_summary WHERE tenant_id = 'aging'";
  await expect.poll(async () => (await db.prepare(sql).all()).results).toEqual([{ day: month, requests: 1 }]);
});
