import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, admin, completion, tenantWithKey } from '../../admin/admin-client.ts';
import { eventually } from '../../support/eventually.ts';
import { workerForTests } from '../../support/worker-for-tests.ts';
import { WorkerdLog } from '../../support/workerd-log.ts';

const log = new WorkerdLog(/"event":"usage_report_failed"/);
const { worker } = workerForTests({ ADMIN_KEY_SHA256, USAGE_REPORT_MS: '100' }, { log });

test('without the summary, requests and the usage of each tenant go on; it gets all news once it works again', async () => {
  const rename = (from: string, to: string) =>
    worker.database.prepare(`ALTER TABLE ${from} RENAME TO ${to}`).run();
  await rename('usage_summary', 'away');
  const { key } = await tenantWithKey(worker, 'known');
  const usage = async (query = '') => (await admin(worker, 'GET', `/usage?group_by=tenant${query}`)).body;
  expect((await completion(worker, key)).status).toBe(200);
  await expect.poll(() => log.lines.length).toBeGreaterThan(0);
  expect((await completion(worker, key)).status).toBe(200);
  const ended = () => usage('&tenant=known');
  await eventually(ended, ({ total }) => total.requests === 2);
  expect((await completion(worker, (await tenantWithKey(worker, 'new')).key)).status).toBe(200);
  await rename('away', 'usage_summary');
  const all = await eventually(usage, ({ total }) => total.requests === 3);
  expect(all.data).toMatchObject([
    { tenant: 'known', requests: 2 },
    { tenant: 'new', requests: 1 },
  ]);
  expect(all.as_of).toBeLessThan((await ended()).as_of);
});
