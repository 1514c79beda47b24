import { expect, test } from 'vitest';
import { ADMIN_KEY_SHA256, tenantWithKey } from '../admin/admin-client.ts';
import { workerForTests } from '../support/worker-for-tests.ts';

const { worker } = workerForTests(
  { ADMIN_KEY_SHA256 },
  { entry: 'test/worker/support/entries/counted-answers.ts' },
);

interface Point {
  readonly indexes: readonly string[];
  readonly blobs: readonly string[];
  readonly doubles: readonly number[];
}

test('every answer is one data point, refusals included, without queries, keys and texts', async () => {
  const { key, keyId } = await tenantWithKey(worker, 'counted', { requests_per_minute: 1 });
  await worker.request('/points');
  const headers = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` } });
  const body = { model: 'org/tiny', prompt: 'SECRET TEXT', max_tokens: 1 };
  for (const [sent, secret] of [
    [body, key],
    [body, key],
    [body, 'sk-wrong'],
    [{ ...body, max_tokens: -7 }, key],
  ] as const) {
    await (await worker.post(sent, headers(secret))).text();
  }
  await (await worker.request('/v1/nothing?token=SECRET')).text();
  const points = (await (await worker.request('/points')).json()) as Point[];
  const shown = points.map(({ indexes, blobs }) => [...indexes, ...blobs.slice(1)]);
  const path = '/v1/completions';
  expect(shown).toEqual([
    ['counted', keyId, 'POST', path, '200', ''],
    ['counted', keyId, 'POST', path, '429', expect.any(String)],
    ['', '', 'POST', path, '401', 'invalid_api_key'],
    ['counted', keyId, 'POST', path, '400', expect.any(String)],
    [expect.any(String), expect.any(String), 'GET', '/v1/nothing', '404', 'unknown_url'],
  ]);
  for (const { blobs, doubles } of points) {
    expect(blobs[0]).toMatch(/^req_/);
    expect(doubles[0]).toBeGreaterThanOrEqual(0);
  }
  expect(JSON.stringify(points)).not.toMatch(/SECRET|sk-/);
});
