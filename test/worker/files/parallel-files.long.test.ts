import { expect, test } from 'vitest';
import { objectKey } from '../../../worker/files/file-store.ts';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { BatchClient } from '../batches/batch-client.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests({ ADMIN_KEY_SHA256, MAX_HELD_BODY_BYTES: String(2 ** 30) });

test('a tenant has at most 1,000 files, also if many are uploaded at the same time', async () => {
  const { key } = await tenantWithKey(worker, 'files');
  const client = new BatchClient(worker, key);
  const names = Array.from({ length: 994 }, (_, index) => `file-old-${index}`);
  await Promise.all(names.map((name) => worker.files.put(objectKey('files', 'files', name), '')));
  const replies = await Promise.all(Array.from({ length: 12 }, () => client.send('x')));
  expect(replies.map(({ status }) => status).toSorted()).toEqual([
    ...Array.from({ length: 6 }, () => 200),
    ...Array.from({ length: 6 }, () => 400),
  ]);
});
