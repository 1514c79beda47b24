import { expect, test } from 'vitest';
import { batchObject } from '../../../shared/batch.ts';
import { eventually } from '../support/eventually.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { BatchClient, lineOf } from './batch-client.ts';

const { worker, origin } = workerForTests();
const client = new BatchClient(worker);

test('runs the lines as flex requests and writes their answers in the order of the input', async () => {
  const ids = ['b', 'a', 'c'];
  const content = ids.map((id) => lineOf(id, { prompt: `Prompt ${id}` })).join('\n');
  const started = await client.start(content, { metadata: { job: 'one' } });
  expect(batchObject.parse(started)).toMatchObject({
    object: 'batch',
    metadata: { job: 'one' },
    errors: null,
  });
  const batch = batchObject.parse(await client.until(started.id, 'completed'));
  expect(batch).toMatchObject({ request_counts: { total: 3, completed: 3, failed: 0 }, error_file_id: null });
  expect([batch.in_progress_at, batch.finalizing_at, batch.completed_at]).not.toContain(null);
  const records = await client.records(batch.output_file_id);
  expect(records.map((record) => record.custom_id)).toEqual(ids);
  for (const { id, response, error } of records) {
    expect([id.startsWith('batch_req_'), response?.status_code, error]).toEqual([true, 200, null]);
    expect(response?.request_id).toMatch(/^req_/);
    expect(response?.body.choices[0]?.text).toBe(' 0 two three four');
  }
  expect(origin.requests.map(({ flex }) => flex)).toEqual([true, true, true]);
});

test('runs lines with the same beginning next to each other', async () => {
  const beginnings = Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? 'y' : 'x'));
  const content = beginnings
    .map((start, index) => lineOf(`${index}`, { prompt: `${start} ${index}` }))
    .join('\n');
  const before = origin.requests.length;
  const sent = () => origin.requests.slice(before).map(({ prompts }) => String(prompts[0]).charAt(0));
  const { script } = origin;
  // No line is answered, and no other sent, before the first eight have arrived in some order.
  origin.script = async (request, wire) => {
    await eventually(
      async () => sent().length,
      (count) => count >= 8,
    );
    await script(request, wire);
  };
  const { id } = await client.start(content);
  await client.until(id, 'completed');
  expect(sent().join('')).toMatch(/^x{8}y{8}$/);
});
