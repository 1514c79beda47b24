import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { WorkerdLog } from '../support/workerd-log.ts';

const log = new WorkerdLog(/"event":"usage_flush_failed"/);
const { worker } = workerForTests({ ADMIN_KEY_SHA256 }, { log });

test('a usage database that fails stops no new and no known key, and gets all records once it works again', async () => {
  const rename = (from: string, to: string) =>
    worker.usageDatabase.prepare(`ALTER TABLE ${from} RENAME TO ${to}`).run();
  await rename('usage_daily', 'away');
  const { key } = await tenantWithKey(worker, 'known');
  expect((await completion(worker, key)).status).toBe(200);
  await expect.poll(() => log.lines.length).toBeGreaterThan(0);
  expect((await completion(worker, key)).status).toBe(200);
  expect((await completion(worker, (await tenantWithKey(worker, 'new')).key)).status).toBe(200);
  await rename('away', 'usage_daily');
  for (const [tenant, requests] of [
    ['known', 2],
    ['new', 1],
  ] as const) {
    const usage = () => admin(worker, 'GET', `/usage?tenant=${tenant}`);
    await eventually(usage, ({ body }) => body.total.requests === requests);
  }
});
