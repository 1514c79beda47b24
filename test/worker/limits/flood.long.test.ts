import { expect, test } from 'vitest';
import type { PlatformRateLimit } from '../../../origin/cli/start/local-worker.ts';
import { apiKeyId } from '../../../shared/api-key.ts';
import { forAllTests } from '../../support/for-tests.ts';
import { ADMIN_KEY_SHA256, completion, tenantWithKey } from '../admin/admin-client.ts';
import { keyOf } from '../auth/forged-key.ts';
import { startFakeOrigin } from '../support/fake-origin.ts';
import { withinOne } from '../support/within-one.ts';
import { type RunningWorker, startWorker } from '../support/worker.ts';

/** The platform's rate limits against floods, with small numbers. */
const BY_ADDRESS = 60;
const BY_KEY = 4;
const PERIOD_S = 60;

const shield = (name: string, limit: number): PlatformRateLimit => ({
  namespace_id: name,
  simple: { limit, period: PERIOD_S },
});
const ratelimits = { FLOOD_BY_ADDRESS: shield('1', BY_ADDRESS), FLOOD_BY_KEY: shield('2', BY_KEY) };

const origin = forAllTests(startFakeOrigin);

/** The local platform counts per clock minute and resets its counters at the end of each minute. */
const minute = () => Math.floor(Date.now() / (PERIOD_S * 1000));

/** Runs with a Worker whose counters are zero. */
const withinAMinute = (run: (worker: RunningWorker) => Promise<void>) =>
  withinOne(minute, async () => {
    const worker = await startWorker(origin, { ADMIN_KEY_SHA256 }, { ratelimits });
    await run(worker).finally(() => worker.stop());
  });

test('does not charge a key for requests that have only its public id', () =>
  withinAMinute(async (worker) => {
    const { key } = await tenantWithKey(worker, 'known-by-id');
    const forged = keyOf(apiKeyId(key) ?? '', 7);
    for (let count = 0; count < BY_KEY; count += 1)
      expect((await completion(worker, forged)).status).toBe(401);
    expect((await completion(worker, forged)).status).toBe(429);
    expect((await completion(worker, key)).status).toBe(200);
  }));

test('rejects floods per key and per address, before any look-up or limiter', () =>
  withinAMinute(async (worker) => {
    const { key } = await tenantWithKey(worker, 'noisy', { requests_per_minute: 1000 });
    const { key: other } = await tenantWithKey(worker, 'quiet');
    const statuses: number[] = [];
    for (let count = 0; count < BY_KEY + 3; count += 1) statuses.push((await completion(worker, key)).status);
    expect(statuses).toEqual([...Array(BY_KEY).fill(200), 429, 429, 429]);
    const { headers, body } = await completion(worker, key);
    expect(body.error).toMatchObject({
      code: 'rate_limit_exceeded',
      message: expect.stringMatching(/address or API key/),
    });
    expect(headers.get('retry-after')).toBe('10');
    expect(headers.get('x-should-retry')).toBe('true');
    // The rejected requests did not count against the tenant's limit.
    expect(headers.get('x-ratelimit-remaining-requests')).toBeNull();
    const { headers: admitted, status } = await completion(worker, other);
    expect([status, admitted.get('x-ratelimit-remaining-requests')]).toEqual([200, null]);
    // Requests without a key count against the address as well.
    const strangers = await Promise.all(
      Array.from({ length: BY_ADDRESS }, () =>
        worker.request('/v1/models', { headers: { authorization: 'none' } }),
      ),
    );
    expect(new Set(strangers.map(({ status: answered }) => answered))).toEqual(new Set([401, 429]));
    expect((await completion(worker, other)).status).toBe(429);
    expect((await worker.request('/health')).status).toBe(200);
  }));

test('counts all IPv6 addresses of a /64 network together', () =>
  withinAMinute(async (worker) => {
    const comeFrom = (address: string) =>
      worker.request('/v1/models', { headers: { authorization: 'none', 'cf-connecting-ip': address } });
    const answers = await Promise.all(
      Array.from({ length: 2 * BY_ADDRESS }, (_, host) => comeFrom(`2001:db8:0:1:${host.toString(16)}::1`)),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(BY_ADDRESS);
    expect((await comeFrom('2001:db8:0:2::1')).status).toBe(401);
  }));
