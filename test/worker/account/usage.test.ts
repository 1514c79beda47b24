import { describe, expect, test } from 'vitest';
import { type AnswerBody, completion, tenantWithKey } from '../admin/admin-client.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';
import { accountAt } from './account-client.ts';

const { worker } = sharedWorker();
const call = accountAt(worker);

describe('own usage', () => {
  test('shows what the account used, of no other account, as JSON and CSV', async () => {
    const { key, keyId } = await tenantWithKey(worker, 'own-usage');
    const other = await tenantWithKey(worker, 'own-usage-other');
    for (const one of [key, key, other.key]) expect((await completion(worker, one)).status).toBe(200);
    await expect.poll(async () => (await call(key, 'GET', '/usage')).body.total.requests).toBe(2);
    const { body } = await call(key, 'GET', '/usage?group_by=key');
    expect(body.data).toMatchObject([{ key: keyId, requests: 2, completed: 2 }]);
    const csv = await worker.request('/v1/usage?group_by=key&format=csv', {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [names, row, end] = (await csv.text()).split('\r\n').map((line) => line.split(','));
    expect(Object.fromEntries(names!.map((name, i) => [name, row![i]]))).toMatchObject({
      key: keyId,
      requests: '2',
    });
    expect(end).toEqual(['']);
    expect((await call(key, 'GET', '/usage?tenant=own-usage-other')).status).toBe(400);
  });

  test('is shown page by page, every row once, with the total of all pages', async () => {
    const { key } = await tenantWithKey(worker, 'own-pages');
    for (const user of ['a', 'b', 'c', 'd', 'e']) await completion(worker, key, { user });
    const rows = 'group_by=model,user';
    await expect.poll(async () => (await call(key, 'GET', `/usage?${rows}`)).body.total.requests).toBe(5);
    const users = (body: AnswerBody) => body.data.map((row) => (row as unknown as { user: string }).user);
    const all = users((await call(key, 'GET', `/usage?${rows}`)).body);
    const seen: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const query = `/usage?${rows}&limit=2&after=${encodeURIComponent(after)}`;
      const body = (await call(key, 'GET', query)).body as AnswerBody & { next: string | null };
      expect(body.total.requests).toBe(5);
      expect(body.has_more).toBe(body.next !== null);
      seen.push(...users(body));
      after = body.next;
    }
    expect(seen).toEqual(all);
    const pages: string[] = [];
    let next: string | undefined = `/v1/usage?${rows}&limit=2&format=csv`;
    while (next !== undefined) {
      const page: Response = await worker.request(next, { headers: { authorization: `Bearer ${key}` } });
      pages.push(...(await page.text()).split('\r\n').slice(1, -1));
      [, next] = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '') ?? [];
    }
    expect(pages.map((row) => row.split(',')[2])).toEqual(all);
    for (const after of ['x', '{}', '["a"]', '["a",1]', '["a","b","c"]'])
      expect((await call(key, 'GET', `/usage?${rows}&after=${after}`)).body.error.param, after).toBe('after');
    expect((await call(key, 'GET', '/usage?limit=0')).body.error.param).toBe('limit');
  });

  test('names the columns of a CSV without rows', async () => {
    const { key } = await tenantWithKey(worker, 'own-empty');
    const csv = await worker.request('/v1/usage?group_by=day,key&format=csv', {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(await csv.text()).toMatch(
      /^object,day,key,requests,.*,cost_micros,mean_latency_ms,mean_first_token_ms\r\n$/,
    );
  });
});
