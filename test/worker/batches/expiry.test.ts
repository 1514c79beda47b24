import { globSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { newDirectory } from '../../support/new-directory.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeOrigin } from '../support/fake-origin.ts';
import { startWorker } from '../support/worker.ts';
import { BatchClient, lineOf } from './batch-client.ts';
import { SlowOrigin } from './slow-origin.ts';

const LINES = 200;

/** Lets the time of the batch in a directory of state be over. */
function expireBatch(state: string): void {
  for (const file of globSync(path.join(state, '**/*.sqlite'))) {
    using database = new DatabaseSync(file);
    const isBatch = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'batch'").get();
    if (isBatch) database.exec("UPDATE batch SET state = json_set(state, '$.batch.expires_at', 1)");
  }
}

test('a batch whose time is over keeps the results of lines that ran, and gives all others an error', async () => {
  const state = newDirectory();
  const origin = await startFakeOrigin();
  new SlowOrigin(origin);
  let worker = await startWorker(origin, {}, { state });
  onTestFinished(async () => {
    await worker.stop();
    await origin.stop();
  });
  const before = new BatchClient(worker);
  const lines = Array.from({ length: LINES }, (_, index) => lineOf(`${index}`, { max_tokens: 40 }));
  const { id } = await before.start(lines.join('\n'));
  await eventually(
    () => before.show(id),
    ({ request_counts }) => request_counts.completed > 0,
  );
  await worker.stop();
  expireBatch(state);
  worker = await startWorker(origin, {}, { state });
  const client = new BatchClient(worker);
  const batch = await client.until(id, 'expired');
  const [output, errors] = [
    await client.records(batch.output_file_id),
    await client.records(batch.error_file_id),
  ];
  expect(batch.request_counts).toEqual({ total: LINES, completed: output.length, failed: errors.length });
  expect(output.length).toBeGreaterThan(0);
  expect(new Set([...output, ...errors].map((record) => record.custom_id)).size).toBe(LINES);
  expect(new Set(errors.map(({ error }) => error?.code))).toEqual(new Set(['batch_expired']));
  expect(batch.expired_at).toBeGreaterThan(batch.created_at - 1);
});
