import { describe, expect, test } from 'vitest';
import { completion, tenantWithKey } from '../admin/admin-client.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';
import { accountAt } from './account-client.ts';

const { worker } = sharedWorker();
const call = accountAt(worker);

interface Page {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
  readonly next: string | null;
}

describe('own requests', () => {
  test('shows one request without its text, to its own account only', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'own-request');
    const other = await tenantWithKey(worker, 'own-request-other');
    const { headers } = await completion(worker, key, { prompt: 'a secret prompt', max_tokens: 5 });
    const id = headers.get('x-request-id')!;
    await expect.poll(async () => (await call(key, 'GET', `/requests/${id}`)).status).toBe(200);
    const { body } = await call(key, 'GET', `/requests/${id}`);
    expect(body).toMatchObject({
      object: 'request',
      id,
      key: keyId,
      model: 'org/tiny',
      status: 'completed',
      error_code: null,
      completion_tokens: 5,
      finish_reasons: ['length'],
      created_at: expect.any(Number),
    });
    expect(JSON.stringify(body)).not.toContain('secret');
    expect((await call(other.key, 'GET', `/requests/${id}`)).body.error.code).toBe('not_found');
    expect((await call(key, 'GET', '/requests/none')).status).toBe(404);
  });

  test('shows the last of several requests that a client gave the same id', async () => {
    const { key } = await tenantWithKey(worker, 'own-request-twice');
    const name = `mine.with.dots${'x'.repeat(110)}`;
    const headers = { authorization: `Bearer ${key}`, 'x-request-id': name };
    for (const max_tokens of [2, 3])
      await worker.post({ model: 'default', prompt: 'Hi', max_tokens }, { headers });
    const tokens = async () =>
      (await call(key, 'GET', `/requests/${name}`)).body as unknown as { completion_tokens: number };
    await expect.poll(async () => (await tokens()).completion_tokens).toBe(3);
  });

  test('are listed with the last one first, in pages, without those of other accounts', async () => {
    const { key } = await tenantWithKey(worker, 'own-requests');
    const { key: other } = await tenantWithKey(worker, 'own-requests-of-others');
    const ids: (string | null)[] = [];
    for (const model of ['default', 'default', 'default']) {
      const { headers } = await completion(worker, key, { model, max_tokens: 2 });
      ids.unshift(headers.get('x-request-id'));
      // In order: requests that end together are one call of the object.
      const list = () => call(key, 'GET', '/requests').then(({ body }) => body.data.length);
      await expect.poll(list).toBe(ids.length);
    }
    await completion(worker, other, { max_tokens: 2 });
    const page = async (query: string) => {
      const { body } = await call(key, 'GET', `/requests${query}`);
      const { data, has_more, next } = body as unknown as Page;
      return { found: data.map(({ id }) => id), has_more, next };
    };
    expect(await page('')).toEqual({ found: ids, has_more: false, next: null });
    const first = await page('?limit=2');
    expect(first).toMatchObject({ found: ids.slice(0, 2), has_more: true });
    expect(await page(`?limit=2&after=${first.next}`)).toEqual({
      found: ids.slice(2),
      has_more: false,
      next: null,
    });
    const { body } = await call(key, 'GET', '/requests?limit=1');
    expect(body.data[0]).toEqual((await call(key, 'GET', `/requests/${ids[0]}`)).body);
  });

  test.each([
    ['?limit=0', 'limit'],
    ['?after=x', 'after'],
    ['?user=x', 'user'],
  ])('a list with %s is refused by the name of the field', async (query, param) => {
    const { key } = await tenantWithKey(worker, `own-requests-${param}`);
    const { status, body } = await call(key, 'GET', `/requests${query}`);
    expect([status, body.error.param]).toEqual([400, param]);
  });
});
