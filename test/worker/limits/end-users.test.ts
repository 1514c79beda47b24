import { describe, expect, test } from 'vitest';
import { tokenLimitNumber } from '../../../shared/sampling.ts';
import { admin, completion, tenantWithKey } from '../admin/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { acceptedFor, doneFor, finishOf, tokenEvent } from '../support/scripts.ts';
import { open, Stage } from '../support/stage.ts';
import { sharedWorker } from '../support/worker-for-tests.ts';

const { worker, origin } = sharedWorker();

/** Returns the statuses of requests, one after the other. */
async function statuses(key: string, all: readonly Readonly<Record<string, unknown>>[]): Promise<number[]> {
  const found: number[] = [];
  for (const fields of all) found.push((await completion(worker, key, fields)).status);
  return found;
}

describe('limits of end users', () => {
  test('hold for each name, and not for requests without one', async () => {
    const { key } = await tenantWithKey(worker, 'each', { user_requests_per_minute: 2 });
    const [a, b, none, empty] = [{ user: 'a' }, { user: 'b' }, {}, { user: '' }];
    expect(await statuses(key, [a, a, a, b, b, b, none, none, none, empty, empty, empty])).toEqual([
      ...[200, 200, 429, 200, 200, 429, 200, 200, 200, 200, 200, 200],
    ]);
    const { body, headers } = await completion(worker, key, a);
    expect(body.error).toMatchObject({ code: 'rate_limit_exceeded' });
    expect(body.error.message).toContain(
      "for org/tiny in the end user of 'user' on requests per min (RPM): Limit 2, Used 2, Requested 1.",
    );
    expect(headers.get('x-ratelimit-limit-requests')).toBe('2');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('are the lower of those of the tenant and of the key, for all keys together', async () => {
    const limits = { user_requests_per_minute: 1 };
    const { key } = await tenantWithKey(worker, 'lower', { user_requests_per_minute: 2 });
    const { body } = await admin(worker, 'POST', '/keys', { tenant: 'lower', name: 'strict', limits });
    const user = { user: 'a' };
    expect(await statuses(key, [user])).toEqual([200]);
    expect(await statuses(body.key, [user])).toEqual([429]);
    expect(await statuses(key, [user, user])).toEqual([200, 429]);
    expect(await statuses(body.key, [{ user: 'b' }])).toEqual([200]);
  });

  test('leave other budgets unchanged when they refuse', async () => {
    const { key } = await tenantWithKey(worker, 'whole', {
      user_requests_per_minute: 1,
      requests_per_minute: 3,
    });
    const [a, b] = [{ user: 'a' }, { user: 'b' }];
    expect(await statuses(key, [a, a, a, a, b, {}, {}])).toEqual([200, 429, 429, 429, 200, 200, 429]);
  });

  test('admit exactly as many parallel requests as they have places', async () => {
    const { key } = await tenantWithKey(worker, 'places', { user_concurrent_requests: 3 });
    const stage = new Stage(origin);
    const streams = await open(worker, key, 3, { user: 'a' });
    const more = await Promise.all(Array.from({ length: 20 }, () => completion(worker, key, { user: 'a' })));
    expect(more.map(({ status }) => status)).toEqual(Array(20).fill(429));
    stage.endAll();
    await Promise.all(streams.map((stream) => stream.text()));
    origin.reset();
    const { status } = await eventually(
      () => completion(worker, key, { user: 'a' }),
      (answer) => answer.status === 200,
    );
    expect(status).toBe(200);
  });

  test('end a stream that has used them up, and name the limit', async () => {
    const { key } = await tenantWithKey(worker, 'ending', { user_tokens_per_month: 400 });
    origin.script = (request, wire) => {
      const maxTokens = tokenLimitNumber(request.maxTokens);
      wire.send(...acceptedFor(request));
      for (let token = 1; token <= maxTokens; token += 1) wire.send(tokenEvent(token, 'x'));
      wire.send(finishOf(0, 'length', maxTokens), doneFor(request, maxTokens));
      wire.end();
    };
    const { body } = await completion(worker, key, { user: 'a', max_tokens: 1_000 });
    origin.reset();
    expect(body.choices[0]!.finish_reason).toBe('length');
    expect(body.usage).toMatchObject({ total_tokens: 400, limit_reached: 'user_tokens_per_month' });
    expect(await statuses(key, [{ user: 'a' }, { user: 'b', max_tokens: 4 }])).toEqual([429, 200]);
  });
});

describe('usage of end users', () => {
  test('is listed by the hash of the name, or for one name', async () => {
    const { key } = await tenantWithKey(worker, 'named');
    expect(await statuses(key, [{ user: 'a' }, { user: 'a' }, { user: 'b' }, {}])).toEqual([
      ...[200, 200, 200, 200],
    ]);
    const usage = async (query: string) =>
      (await worker.request(`/v1/usage?${query}`, { headers: { authorization: `Bearer ${key}` } })).json();
    await eventually(
      () => admin(worker, 'GET', '/usage?tenant=named'),
      ({ body }) => body.total.requests === 4,
    );
    const { data } = (await usage('group_by=user')) as { data: { user: string; requests: number }[] };
    expect(data.map(({ requests }) => requests).toSorted()).toEqual([1, 2]);
    for (const { user } of data) expect(user).toMatch(/^[0-9a-f]{16}$/);
    expect(await usage('user=a&group_by=day,user')).toMatchObject({
      total: { requests: 2, completion_tokens: 8 },
    });
    expect(await usage('user=c')).toMatchObject({ data: [], total: { requests: 0 } });
  });

  test('cannot be asked of no tenant', async () => {
    const { status, body } = await admin(worker, 'GET', '/usage?user=a');
    expect([status, body.error.param]).toEqual([400, 'user']);
  });
});
