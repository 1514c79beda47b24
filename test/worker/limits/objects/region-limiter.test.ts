import { setTimeout as sleep } from 'node:timers/promises';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import type { Renewal } from '../../../../worker/env/limiter-protocol.ts';
import { type Database, migrate } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startWorkerd } from '../../support/workerd.ts';
import { type ForgetfulOrigin, startForgetfulOrigin } from '../../usage/forgetful-origin.ts';

/** A Worker with only the limiters. Regions report their unconfirmed decisions and their next alarm. */
const OBJECTS = `
  import { RegionLimiter as Region } from './limits/objects/region-limiter.ts';
  export { TenantLimiter } from './limits/objects/tenant-limiter.ts';
  export class RegionLimiter extends Region {
    async state() {
      const journal = this.ctx.storage.sql.exec('SELECT 1 FROM journal').toArray().length;
      return { journal, alarm: await this.ctx.storage.getAlarm() };
    }
  }
  export default {
    async fetch(request, env) {
      const { binding, name, method, args } = await request.json();
      const object = env[binding].get(env[binding].idFromName(name));
      return Response.json((await object[method](...args)) ?? null);
    },
  };
`;

let origin: ForgetfulOrigin;
let workerd: Miniflare;
let db: Database;

beforeAll(async () => {
  origin = await startForgetfulOrigin();
  const objects = { LIMITER: 'TenantLimiter', REGIONS: 'RegionLimiter' };
  ({ workerd, db } = await startWorkerd(OBJECTS, objects, undefined, origin.bindings));
  await migrate(db);
});
afterAll(async () => {
  await workerd?.dispose();
  await origin?.stop();
});

/** Returns the calls of a tenant's home limiter and of its region in Frankfurt. */
function limitersOf(tenant: string, limits: Partial<Limits>) {
  const call = async (binding: string, name: string, method: string, args: readonly unknown[]) => {
    const body = JSON.stringify({ binding, name, method, args });
    return (await workerd.dispatchFetch('http://objects/', { method: 'POST', body })).json();
  };
  const home = (method: string, ...args: readonly unknown[]) => call('LIMITER', tenant, method, args);
  const region = (method: string, ...args: readonly unknown[]) =>
    call('REGIONS', `${tenant}@FRA`, method, args);
  const subjects = { tenantLimits: { ...UNLIMITED, ...limits }, keyLimits: UNLIMITED };
  const holder = { tenantId: tenant, keyId: 'key', ...subjects };
  const reserve = (requestId: string, ttlMs = 600_000) =>
    region('reserve', { ...holder, model: 'tiny', tokens: 1, requestId, ttlMs }, []);
  const remaining = async () =>
    ((await home('rateLimitHeaders', holder)) as Record<string, string>)['x-ratelimit-remaining-requests'];
  const state = () => region('state') as Promise<{ journal: number; alarm: number | null }>;
  return { home, region, reserve, remaining, state };
}

const usageOf = (completionTokens: number) => ({ promptTokens: 0, cachedTokens: 0, completionTokens });

const settlement = (requestId: string) => ({
  requestId,
  settlement: {
    ...{ status: 'completed', usage: usageOf(1), errorCode: null, finishReasons: ['stop'] },
    ...{ upstream: 'origin', latencyMs: 1, firstTokenMs: null },
  },
});

describe.concurrent('a regional limiter', () => {
  test('rejects a revoked key at once, in spite of its slices, until it is unblocked', async () => {
    const { home, reserve } = limitersOf('blocked', { requestsPerMinute: 800 });
    expect([await reserve('a'), await reserve('b')]).toMatchObject([{ admitted: true }, { admitted: true }]);
    await home('block', 'key', true);
    for (const id of ['c', 'd', 'e']) {
      expect(await reserve(id)).toMatchObject({ admitted: false, refusal: 'revoked' });
    }
    await home('block', 'key', false);
    expect(await reserve('f')).toMatchObject({ admitted: true });
  });

  test('returns its slices without further requests, and then sets no more alarms', async () => {
    const { region, reserve, remaining, state } = limitersOf('idle', { requestsPerMinute: 800 });
    await reserve('a');
    await reserve('b');
    expect(Number(await remaining())).toBeLessThan(790);
    await region('settle', [settlement('a'), settlement('b')]);
    await eventually(remaining, (left) => left === '798');
    // A running alarm is not visible, so the test looks twice, further apart than alarms are.
    const looks = async () => {
      const first = await state();
      await sleep(1200);
      return [first, await state()];
    };
    await eventually(looks, (states) =>
      states.every(({ journal, alarm }) => journal === 0 && alarm === null),
    );
  });

  test('forwards renewals, and the last one is billed if the Worker vanishes', async () => {
    const { region, reserve } = limitersOf('vanished', { requestsPerMinute: 800 });
    await reserve('first');
    const renewal: Renewal = { ttlMs: 1000, usage: usageOf(6), upstream: 'origin' };
    await reserve('silent', renewal.ttlMs);
    await region('renew', 'silent', renewal);
    const rows = async () =>
      (await db.prepare("SELECT * FROM usage_daily WHERE tenant_id = 'vanished'").all()).results;
    const [row] = await eventually(rows, ({ length }) => length > 0);
    expect(row).toMatchObject({ requests: 1, abandoned: 1, completion_tokens: 6 });
  });
});
