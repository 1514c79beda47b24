import { beforeEach, expect, test } from 'vitest';
import type * as z from 'zod';
import type { usageResponse } from '../../../shared/usage-queries.ts';
import { pruneRequests, rollUpUsage } from '../../../worker/usage/usage-retention.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests({ USAGE_DAYS: '31' });
const DAY_MS = 86_400_000;

beforeEach(() => worker.usageDatabase.prepare('DELETE FROM usage_daily').run());

async function add(day: string, tenant: string, key: string, tokens: number): Promise<void> {
  await worker.usageDatabase
    .prepare('INSERT INTO usage_daily VALUES (?, ?, ?, ?, 1, 1, 0, 0, 0, 1, 0, ?, 0, 1, 1, 1, 1, 0)')
    .bind(tenant, day, 'tiny', key, tokens)
    .run();
}

const rows = async () =>
  (
    await worker.usageDatabase
      .prepare('SELECT tenant_id AS t, day, key_id AS k, requests AS r, prompt_tokens AS p FROM usage_daily')
      .all()
  ).results;

const rollUp = (now: string) =>
  rollUpUsage(worker.usageDatabase as unknown as D1Database, 31, Date.parse(now));

test('adds old days to the first day of their month, per tenant and key, and keeps newer days', async () => {
  await add('2026-01-01', 'a', 'k', 1);
  await add('2026-01-02', 'a', 'k', 2);
  await add('2026-01-31', 'a', 'other', 4);
  await add('2026-01-31', 'b', 'k', 8);
  await add('2026-02-10', 'a', 'k', 16);
  await add('2026-02-11', 'a', 'k', 32);
  const expected = [
    { t: 'a', day: '2026-01-01', k: 'k', r: 2, p: 3 },
    { t: 'a', day: '2026-01-01', k: 'other', r: 1, p: 4 },
    { t: 'a', day: '2026-02-01', k: 'k', r: 1, p: 16 },
    { t: 'a', day: '2026-02-11', k: 'k', r: 1, p: 32 },
    { t: 'b', day: '2026-01-01', k: 'k', r: 1, p: 8 },
  ];
  await rollUp('2026-03-14');
  expect(await rows()).toEqual(expected);
  await rollUp('2026-03-14');
  expect(await rows()).toEqual(expected);
});

test('rolls old days up in the daily run', async () => {
  const dayName = (ago: number) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  const [old, today] = [`${dayName(90).slice(0, 8)}17`, dayName(0)];
  await add(old, 'a', 'k', 1);
  await add(today, 'a', 'k', 1);
  await worker.runScheduled();
  expect(await rows()).toMatchObject([{ day: `${old.slice(0, 8)}01` }, { day: today }]);
});

test('deletes old records of requests, however many, and keeps the sums', async () => {
  const db = worker.usageDatabase as unknown as D1Database;
  await db
    .prepare(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10002)
      INSERT INTO requests (tenant_id, request_id, sequence, started_at, record)
      SELECT 'a', 'r' || i, i, iif(i > 10000, ?, 0), '{}' FROM n`)
    .bind(40 * DAY_MS)
    .run();
  await add('1970-01-01', 'a', 'k', 1);
  await pruneRequests(db, 30, 60 * DAY_MS);
  const left = await db.prepare('SELECT request_id AS id FROM requests ORDER BY sequence').all();
  expect(left.results).toEqual([{ id: 'r10001' }, { id: 'r10002' }]);
  expect(await rows()).toHaveLength(1);
});

test('shows 10,000 rows on a page of usage, and covers 31 days without a first day', async () => {
  const today = new Date().toISOString().slice(0, 10);
  await worker.usageDatabase
    .prepare(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 10000)
      INSERT INTO usage_daily SELECT 't' || i, ?, 'tiny', 'k', 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0 FROM n`)
    .bind(today)
    .run();
  await add('2020-01-01', 'a', 'k', 1);
  const first = (await (await worker.request('/admin/v1/usage?group_by=tenant')).json()) as z.infer<
    typeof usageResponse
  >;
  expect([first.data.length, first.has_more, first.total.requests]).toEqual([10_000, true, 10_001]);
  const after = encodeURIComponent(first.next ?? '');
  const rest = await worker.request(`/admin/v1/usage?group_by=tenant&after=${after}`);
  expect(await rest.json()).toMatchObject({ data: [{ requests: 1 }], has_more: false, next: null });
  const byDay = await worker.request('/admin/v1/usage?group_by=day');
  expect(await byDay.json()).toMatchObject({ data: [{ day: today, requests: 10_001 }] });
});
