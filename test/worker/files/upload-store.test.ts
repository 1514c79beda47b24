import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { afterAll, expect, test } from 'vitest';
import type { Upload } from '../../../shared/batch.ts';
import { getUpload, listUploads, partKey, putUpload } from '../../../worker/files/upload-store.ts';

const miniflare = new Miniflare(
  convertV4MiniflareOptions({ modules: true, script: 'export default {}', r2Buckets: ['FILES'] }),
);
afterAll(() => miniflare.dispose());

const HOUR_MS = 3_600_000;

const upload = (id: string, createdAt: number): Upload => ({
  id,
  object: 'upload',
  bytes: 1,
  filename: 'a',
  purpose: 'batch',
  status: 'pending',
  file: null,
  created_at: createdAt,
  expires_at: createdAt + 3_600,
});

test('an upload expires after an hour, and the next one deletes what it has left', async () => {
  const bucket = (await miniflare.getR2Bucket('FILES')) as unknown as R2Bucket;
  const now = Date.now();
  await putUpload(bucket, 'tenant', upload('old', Math.floor(now / 1_000)), null);
  await bucket.put(partKey('tenant', 'old', 'part'), 'a');
  const statusAt = async (at: number) => (await getUpload(bucket, 'tenant', 'old', at))?.upload.status;
  expect([await statusAt(now), await statusAt(now + HOUR_MS)]).toEqual(['pending', 'expired']);
  expect(await listUploads(bucket, 'tenant', now)).toEqual({ listed: ['old'], counted: 1 });
  expect(await listUploads(bucket, 'tenant', now + HOUR_MS + 60_000)).toEqual({ listed: [], counted: 0 });
  expect((await bucket.list()).objects).toEqual([]);
});

test('a record that another request has changed is not overwritten', async () => {
  const bucket = (await miniflare.getR2Bucket('FILES')) as unknown as R2Bucket;
  await putUpload(bucket, 'tenant', upload('raced', 0), null);
  const { etag } = (await getUpload(bucket, 'tenant', 'raced', 0))!;
  const change = (status: Upload['status']) =>
    putUpload(bucket, 'tenant', { ...upload('raced', 0), status }, etag);
  expect([await change('cancelled'), await change('completed')]).toEqual([true, false]);
  expect((await getUpload(bucket, 'tenant', 'raced', 0))?.upload.status).toBe('cancelled');
});
