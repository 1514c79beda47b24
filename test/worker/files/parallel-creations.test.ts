import { expect, test } from 'vitest';
import type { Upload } from '../../../shared/batch.ts';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { BatchClient, lineOf } from '../batches/batch-client.ts';
import { acceptedFor } from '../support/scripts.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

/** Limits of numbers hold for requests that have all counted before any of them has created anything. */

const HELD = String(2 ** 30);
const { worker, origin } = workerForTests({ ADMIN_KEY_SHA256, MAX_HELD_BODY_BYTES: HELD });

const clientOf = async (tenant: string) => {
  const { key } = await tenantWithKey(worker, tenant);
  return { key, client: new BatchClient(worker, key) };
};

/** Returns how many of these requests had which status. */
async function statuses(replies: readonly Promise<{ readonly status: number }>[]) {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(replies)) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

test('a tenant has at most 20 running batches', async () => {
  const { client } = await clientOf('batches');
  origin.script = (request, wire) => wire.send(...acceptedFor(request));
  const { id } = await client.upload(lineOf('a'));
  const replies = times(40, () => client.create(id));
  expect(await statuses(replies)).toEqual({ 200: 20, 429: 20 });
  expect((await client.create(id)).status).toBe(429);
});

const upload = { filename: 'in.jsonl', purpose: 'batch', bytes: 10, mime_type: 'application/jsonl' };

test('a tenant has at most 20 pending uploads', async () => {
  const { client } = await clientOf('uploads');
  const replies = times(40, () => client.call('POST', '/v1/uploads', upload));
  expect(await statuses(replies)).toEqual({ 200: 20, 429: 20 });
  const created = (await Promise.all(replies)).find(({ status }) => status === 200)!;
  await client.call('POST', `/v1/uploads/${created.body.id}/cancel`);
  expect((await client.call('POST', '/v1/uploads', upload)).status).toBe(200);
});

test('the parts of an upload take at most twice its bytes', async () => {
  const { key, client } = await clientOf('parts');
  const { id } = (await client.call('POST', '/v1/uploads', upload)).body as unknown as Upload;
  const send = () => {
    const body = new FormData();
    body.set('data', new Blob(['x'.repeat(10)]));
    const headers = { authorization: `Bearer ${key}` };
    return worker.request(`/v1/uploads/${id}/parts`, { method: 'POST', headers, body });
  };
  const { 200: kept = 0, ...refused } = await statuses(times(8, send));
  expect(kept).toBeLessThanOrEqual(2);
  expect(refused).toEqual({ 413: 8 - kept });
});
