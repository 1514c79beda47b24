import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { workerForTests } from '../support/worker-for-tests.ts';
import { BatchClient } from './batch-client.ts';

const { worker } = workerForTests({}, { entry: 'test/worker/support/entries/slow-records.ts' });

test('a batch that ends before its first record is written stays ended, and does not count as running', async () => {
  const client = new BatchClient(worker);
  const { id } = await client.upload('');
  const { status } = await client.create(id);
  expect(status).toBe(400);
  await sleep(1_000);
  const { data } = (await client.call('GET', '/v1/batches')).body;
  expect(data).toMatchObject([{ input_file_id: id, status: 'failed' }]);
});
