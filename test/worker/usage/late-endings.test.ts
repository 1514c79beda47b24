import { setTimeout as sleep } from 'node:timers/promises';
import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../shared/tenant.ts';
import type { SettlementRequest } from '../../../worker/env/limiter-protocol.ts';
import { type Call, callLimiter, LIMITER_WORKER } from '../limits/objects/limiter-worker.ts';
import { type Database, migrate } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startWorkerd } from '../support/workerd.ts';
import { type ForgetfulOrigin, startForgetfulOrigin } from './forgetful-origin.ts';

/** Settlements that make the limiter ask the upstream, and messages that arrive late. */

/** Longer than every test, so that no reservation expires. */
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

/** Returns the settlement of a request whose client disconnected. */
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
  const reserve = (requestId: string, ttlMs: number, endings: readonly SettlementRequest[] = []) => {
    const subjects = { tenantId: tenant, keyId: 'key', tenantLimits: { ...UNLIMITED, ...limits } };
    const request = {
      requestId,
      model: 'tiny',
      tokens: 10,
      money: 0,
      ttlMs,
      ...subjects,
      keyLimits: UNLIMITED,
    };
    return call('reserve', request, endings) as Promise<{ admitted: boolean }>;
  };
  const leave = (requestId: string, completionTokens: number) =>
    call('settle', [departure(requestId, completionTokens)]);
  const renew = (requestId: string, completionTokens: number, ttlMs: number) =>
    call('renew', requestId, { usage: usageOf(completionTokens), upstream: 'origin', ttlMs });
  const state = () => call('state') as Promise<{ alarms: number; next: number | null; outbox: number }>;
  return { call, reserve, leave, renew, state };
}

/** Waits until this number of requests is in the tenant's only row, and returns the row. */
async function rowOf(tenant: string, requests: number): Promise<Record<string, unknown>> {
  const rows = async () =>
    (await db.prepare('SELECT * FROM usage_daily WHERE tenant_id = ?').bind(tenant).all()).results as Record<
      string,
      unknown
    >[];
  const [row] = await eventually(rows, ([one]) => Number(one?.requests) >= requests);
  return row!;
}

test('ignores a renewal that arrives after the settlement', async () => {
  const { reserve, leave, renew } = limiterOf('overtaken', {});
  await reserve('r', LONG_MS);
  await leave('r', 9);
  expect(await renew('r', 4, LONG_MS)).toBe(false);
  expect(await rowOf('overtaken', 1)).toMatchObject({ cancelled: 1, completion_tokens: 9 });
});

test('counts a late settlement with an upstream account once against budgets', async () => {
  const { reserve, leave } = limiterOf('after-its-reservation', {
    concurrentRequests: 1,
    tokensPerMonth: 1000,
  });
  await reserve('late', 1_500);
  const next = () => reserve('next', LONG_MS);
  await eventually(next, ({ admitted }) => admitted);
  await leave('late', 900);
  await rowOf('after-its-reservation', 1);
  await leave('next', 5);
  expect(await rowOf('after-its-reservation', 2)).toMatchObject({ cancelled: 2, completion_tokens: 905 });
  const { admitted, ...refused } = await reserve('in between', LONG_MS);
  expect([admitted, refused]).toEqual([true, { headers: {}, tokens: 10, money: 0 }]);
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ refusal: { kind: 'concurrency' } });
  await leave('in between', 90);
  await rowOf('after-its-reservation', 3);
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ refusal: { kind: 'month', used: 995 } });
});

test('asks the upstream once about a settlement that arrived with a reservation', async () => {
  const { reserve, state } = limiterOf('along', {});
  await reserve('first', LONG_MS);
  await reserve('second', LONG_MS, [departure('first', 7)]);
  expect(await rowOf('along', 1)).toMatchObject({ cancelled: 1, completion_tokens: 7 });
  // Waits until the record has left the outbox.
  const { alarms } = await eventually(state, ({ next }) => next !== null && next > Date.now() + LONG_MS / 2);
  for (let index = 0; index < 20; index += 1) await reserve(`more-${index}`, LONG_MS);
  expect((await state()).alarms).toBe(alarms);
});

test('records only the settlement that arrives while the limiter asks the upstream', async () => {
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

test('bills the last account of a running request that the upstream then forgets', async () => {
  const { reserve, leave } = limiterOf('forgotten', {});
  // Longer than a busy machine pauses between the two calls.
  await reserve('r', 2_000);
  origin.answers.push(async () => ({ usage: usageOf(30), finishReasons: [], ended: false }));
  await leave('r', 3);
  expect(await rowOf('forgotten', 1)).toMatchObject({ cancelled: 1, completion_tokens: 30 });
});

test('never bills less than the Worker has relayed, if a restarted upstream knows less', async () => {
  const { reserve, leave } = limiterOf('restarted-upstream', {});
  await reserve('r', LONG_MS);
  origin.answers.push(async () => ({ usage: usageOf(20), finishReasons: [], ended: true }));
  await leave('r', 30);
  expect(await rowOf('restarted-upstream', 1)).toMatchObject({ cancelled: 1, completion_tokens: 30 });
});

test('asks an unreachable upstream again about a request that outlived its reservation', async () => {
  // Longer than a busy machine pauses between two calls.
  const ttlMs = 2_000;
  const { reserve, leave, renew } = limiterOf('outlived', {});
  await reserve('r', ttlMs);
  const alive = () => renew('r', 1, ttlMs);
  const later = async () => {
    await sleep(1.2 * ttlMs);
    return alive();
  };
  await eventually(later, (renewed) => renewed === false);
  for (let beats = 0; beats < 16; beats += 1) {
    await sleep(ttlMs / 10);
    await alive();
  }
  const lost = async () => Promise.reject(new Error('out of reach'));
  origin.answers.push(lost, async () => ({ usage: usageOf(9), finishReasons: [], ended: true }));
  await leave('r', 3);
  expect(await rowOf('outlived', 1)).toMatchObject({ cancelled: 1, completion_tokens: 9 });
});
