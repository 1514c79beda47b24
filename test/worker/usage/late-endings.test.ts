import { setTimeout as sleep } from 'node:timers/promises';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../shared/tenant.ts';
import type { SettlementRequest } from '../../../worker/limits/protocol.ts';
import { type Call, callLimiter, LIMITER_WORKER } from '../limits/objects/limiter-worker.ts';
import { type Database, migrate } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startWorkerd } from '../support/workerd.ts';
import { type ForgetfulOrigin, startForgetfulOrigin } from './forgetful-origin.ts';

/** Endings after which the upstream is asked, when they come late or something comes later than they. */

const LEASE_MS = 500;
/** Ends after every test: nothing is to wait for it. */
const LONG_MS = 600_000;

let origin: ForgetfulOrigin;
let workerd: Miniflare;
let db: Database;

beforeAll(async () => {
  origin = await startForgetfulOrigin();
  const objects = { LIMITER: 'TenantLimiter' };
  ({ workerd, db } = await startWorkerd(LIMITER_WORKER, objects, undefined, origin.bindings));
  await migrate(db);
});
afterAll(async () => {
  await workerd?.dispose();
  await origin?.stop();
});

const usageOf = (completionTokens: number) => ({ promptTokens: 0, cachedTokens: 0, completionTokens });

/** Its caller has left. */
const departure = (requestId: string, completionTokens: number): SettlementRequest => ({
  requestId,
  settlement: {
    ...{ status: 'cancelled', usage: usageOf(completionTokens), errorCode: null, finishReasons: [] },
    ...{ upstream: 'origin', latencyMs: 1, firstTokenMs: null },
  },
  inquire: true,
});

function limiterOf(tenant: string, limits: Partial<Limits>) {
  const call = (method: Call['method'], ...args: readonly unknown[]) =>
    callLimiter(workerd, { tenant, method, args });
  const reserve = (requestId: string, leaseMs: number, endings: readonly SettlementRequest[] = []) => {
    const subjects = { tenantId: tenant, keyId: 'key', tenantLimits: { ...UNLIMITED, ...limits } };
    const request = { requestId, model: 'tiny', tokens: 10, leaseMs, ...subjects, keyLimits: UNLIMITED };
    return call('reserve', request, endings) as Promise<{ admitted: boolean }>;
  };
  const leave = (requestId: string, completionTokens: number) =>
    call('settle', [departure(requestId, completionTokens)]);
  const renew = (requestId: string, completionTokens: number, leaseMs: number) =>
    call('renew', requestId, { usage: usageOf(completionTokens), upstream: 'origin', leaseMs });
  const state = () => call('state') as Promise<{ alarms: number; next: number | null; outbox: number }>;
  return { call, reserve, leave, renew, state };
}

/** The one row of a tenant, once at least so many of its requests are in it. */
async function rowOf(tenant: string, requests: number): Promise<Record<string, unknown>> {
  const rows = async () =>
    (await db.prepare('SELECT * FROM usage_daily WHERE tenant_id = ?').bind(tenant).all()).results as Record<
      string,
      unknown
    >[];
  const [row] = await eventually(rows, ([one]) => Number(one?.requests) >= requests);
  return row!;
}

test('a sign of life that its request’s end has overtaken takes nothing back of what that end has told', async () => {
  const { reserve, leave, renew } = limiterOf('overtaken', {});
  await reserve('r', LEASE_MS);
  await leave('r', 9);
  expect(await renew('r', 4, LEASE_MS)).toBe(false);
  expect(await rowOf('overtaken', 1)).toMatchObject({ cancelled: 1, completion_tokens: 9 });
});

test('a request that tells its end after its lease, and whose upstream is asked, counts once against budgets', async () => {
  const { reserve, leave } = limiterOf('after-its-lease', { concurrentRequests: 1, tokensPerMonth: 1000 });
  await reserve('late', LEASE_MS);
  const next = () => reserve('next', LONG_MS);
  await eventually(next, ({ admitted }) => admitted);
  await leave('late', 900);
  await rowOf('after-its-lease', 1);
  await leave('next', 5);
  expect(await rowOf('after-its-lease', 2)).toMatchObject({ cancelled: 2, completion_tokens: 905 });
  const { admitted, ...refused } = await reserve('in between', LONG_MS);
  expect([admitted, refused]).toEqual([true, { headers: {} }]);
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ refusal: { kind: 'concurrency' } });
  await leave('in between', 90);
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ refusal: { kind: 'month', used: 995 } });
});

test('an upstream is asked about a request whose end came along with a reservation, and never again', async () => {
  const { reserve, state } = limiterOf('along', {});
  await reserve('first', LONG_MS);
  await reserve('second', LONG_MS, [departure('first', 7)]);
  expect(await rowOf('along', 1)).toMatchObject({ cancelled: 1, completion_tokens: 7 });
  // Until the record has left the outbox, too.
  const { alarms } = await eventually(state, ({ next }) => next !== null && next > Date.now() + LONG_MS / 2);
  for (let index = 0; index < 20; index += 1) await reserve(`more-${index}`, LONG_MS);
  expect((await state()).alarms).toBe(alarms);
});

test('an ending that comes while the upstream is being asked about an earlier one is the only record', async () => {
  const { call, reserve, leave, state } = limiterOf('twice-ended', {});
  await reserve('r', LONG_MS);
  await leave('r', 3);
  const { promise, resolve } = Promise.withResolvers<unknown>();
  origin.answers.push(async () => {
    resolve(await call('settle', [{ ...departure('r', 9), inquire: false }]));
    return null;
  });
  expect(await promise).toBe(1);
  await rowOf('twice-ended', 1);
  await eventually(state, ({ outbox }) => outbox === 0);
  expect(await rowOf('twice-ended', 1)).toMatchObject({ requests: 1, completion_tokens: 9 });
});

test('what an upstream has told of a request that it was still running counts, though it forgets it then', async () => {
  const { reserve, leave } = limiterOf('forgotten', {});
  await reserve('r', LEASE_MS);
  await leave('r', 3);
  origin.answers.push(async () => ({ usage: usageOf(30), finishReasons: [], ended: false }));
  expect(await rowOf('forgotten', 1)).toMatchObject({ cancelled: 1, completion_tokens: 30 });
});

test('an upstream out of reach is asked again about a request that outlived its lease by more than that takes', async () => {
  const leaseMs = 150;
  const { reserve, leave, renew } = limiterOf('outlived', {});
  await reserve('r', leaseMs);
  const alive = () => renew('r', 1, leaseMs);
  const later = async () => {
    await sleep(2 * leaseMs);
    return alive();
  };
  await eventually(later, (renewed) => renewed === false);
  for (let beats = 0; beats < 32; beats += 1) {
    await sleep(leaseMs / 1.5);
    await alive();
  }
  await leave('r', 3);
  const lost = async () => Promise.reject(new Error('out of reach'));
  origin.answers.push(lost, async () => ({ usage: usageOf(9), finishReasons: [], ended: true }));
  expect(await rowOf('outlived', 1)).toMatchObject({ cancelled: 1, completion_tokens: 9 });
});
