import { expect, test } from 'vitest';
import type { SummaryRow } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { querySummary, reportUsage } from '../../../../worker/limits/usage/usage-summary.ts';
import { ALL_SUMS } from '../../../../worker/limits/usage/usage-sums.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';
import { EVERYTHING } from './usage-fixtures.ts';

const { worker } = workerForTests();
const db = () => worker.database as unknown as D1Database;
const row = (day: string, model: string, requests: number): SummaryRow => {
  return { day, model, sums: ALL_SUMS.map((name) => (name === 'requests' ? requests : 0)) };
};

test('a report that arrives twice or late changes nothing', async () => {
  const report = (number: number, ...rows: SummaryRow[]) => reportUsage(db(), 'twice', number, rows);
  const gone: SummaryRow = { day: '2026-01-02', model: 'm', sums: null };
  const held = async () => {
    const groups = ['day', 'model'] as const;
    const { rows } = await querySummary(db(), { ...EVERYTHING, groups });
    return rows.map(({ day, model, requests }) => [day, model, requests]);
  };
  await report(1, row('2026-01-01', 'm', 1), row('2026-01-02', 'm', 2));
  await report(1, row('2026-01-01', 'm', 1), row('2026-01-02', 'm', 2));
  expect(await held()).toEqual([
    ['2026-01-01', 'm', 1],
    ['2026-01-02', 'm', 2],
  ]);
  await report(7, row('2026-01-01', 'm', 5), gone);
  await report(1, row('2026-01-01', 'm', 1), row('2026-01-02', 'm', 2), row('2026-01-03', 'm', 3));
  expect(await held()).toEqual([['2026-01-01', 'm', 5]]);
});

test('a summary is by tenant, model and day, in pages', async () => {
  for (const tenant of ['a', 'b']) await reportUsage(db(), tenant, 1, [row('2026-03-01', 'x', 3)]);
  const ask = (more: Partial<typeof EVERYTHING>) =>
    querySummary(db(), { ...EVERYTHING, from: '2026-03-01', groups: ['tenant'], model: 'x', ...more });
  expect(await ask({ limit: 1 })).toMatchObject({
    rows: [{ tenant: 'a', requests: 3 }],
    total: { requests: 6 },
  });
  expect((await ask({ after: ['a'] })).rows).toMatchObject([{ tenant: 'b', requests: 3 }]);
});
