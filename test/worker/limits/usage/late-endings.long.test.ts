import type { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import type { SettlementRequest } from '../../../../worker/limits/quota/protocol.ts';
import { forAllTests } from '../../../support/for-tests.ts';
import { eventually } from '../../support/eventually.ts';
import { startWorkerd } from '../../support/workerd.ts';
import { type Call, callLimiter, LIMITER_WORKER } from '../objects/limiter-worker.ts';
import { startForgetfulOrigin } from './forgetful-origin.ts';

/**
 * Settlements that make the limiter ask the upstream, and messages that arrive late. The clock stands in a
 * year in which no alarm rings by itself, because a busy machine may pause for longer than a reservation
 * lives.
 */

const START = Date.UTC(2100, 0, 1);
/** Longer than every test, so that no reservation expires. */
const LONG_MS = 600_000;
const TTL_MS = 3_000;

const origin = forAllTests(startForgetfulOrigin);
let workerd: Miniflare;

beforeAll(async () => {
  const objects = { LIMITER: 'TenantLimiter' };
  // No report falls into the tests.
  const bindings = { ...origin.bindings, USAGE_REPORT_MS: '86400000000' };
  ({ workerd } = await startWorkerd(LIMITER_WORKER, objects, undefined, bindings));
  await limiterOf('first', {}).pass(START - Date.now());
});
afterAll(() => workerd?.dispose());

const usageOf = (completionTokens: number) => ({ promptTokens: 0, cachedTokens: 0, completionTokens });

/** Returns the settlement of a request whose client disconnected. */
const departure = (requestId: string, completionTokens: number): SettlementRequest => ({
  requestId,
  settlement: {
    status: 'cancelled',
    usage: usageOf(completionTokens),
    errorCode: null,
    finishReasons: [],
    upstream: 'origin',
    latencyMs: 1,
    firstTokenMs: null,
  },
  inquire: true,
});

/** Returns the settlement of a completed request, about which the limiter asks no upstream. */
const ending = (requestId: string, completionTokens: number): SettlementRequest => {
  const { settlement } = departure(requestId, completionTokens);
  return { requestId, settlement: { ...settlement, status: 'completed', finishReasons: ['stop'] } };
};

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
  const settle = (settlement: SettlementRequest) => call('settle', [settlement]);
  const pass = (ms: number) => call('pass', ms);
  const next = () => call('next') as Promise<number>;
  const sums = () => call('sums', tenant) as Promise<Record<string, unknown>[]>;
  return { call, reserve, leave, settle, renew, pass, next, sums };
}

/** Lets a reservation expire, and renews it in vain so often. */
async function outlive(
  { reserve, renew, pass }: ReturnType<typeof limiterOf>,
  requestId: string,
  renewals: number,
): Promise<void> {
  await reserve(requestId, TTL_MS);
  for (let renewal = 0; renewal < renewals; renewal += 1) {
    await pass(renewal === 0 ? TTL_MS : TTL_MS / 3);
    expect(await renew(requestId, 1, TTL_MS)).toBe(false);
  }
}

/** Lets time pass until this number of requests is in the tenant's only row, and returns the row. */
async function rowOf(tenant: string, requests: number): Promise<Record<string, unknown>> {
  const rows = async () => {
    const { pass, sums } = limiterOf(tenant, {});
    await pass(500);
    return sums();
  };
  const [row] = await eventually(rows, ([one]) => Number(one?.requests) >= requests);
  return row!;
}

test('expires a reservation without renewals and bills the last renewal', async () => {
  const { reserve, renew, settle, pass } = limiterOf('vanished', { concurrentRequests: 2 });
  await reserve('silent', TTL_MS);
  await reserve('told', TTL_MS);
  await pass(TTL_MS - 1);
  expect(await renew('told', 6, TTL_MS)).toBe(true);
  await pass(1);
  expect(await reserve('next', LONG_MS)).toMatchObject({ admitted: true });
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ admitted: false });
  expect(await rowOf('vanished', 2)).toMatchObject({ abandoned: 2, completion_tokens: 6 });
  expect(await settle(ending('told', 99))).toBe(0);
  expect(await renew('told', 7, TTL_MS)).toBe(false);
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ admitted: true });
});

test('ignores a renewal that arrives after the settlement', async () => {
  const { reserve, leave, renew } = limiterOf('overtaken', {});
  await reserve('r', LONG_MS);
  await leave('r', 9);
  expect(await renew('r', 4, LONG_MS)).toBe(false);
  expect(await rowOf('overtaken', 1)).toMatchObject({ cancelled: 1, completion_tokens: 9 });
});

test('counts a late settlement with an upstream account once against budgets', async () => {
  const { reserve, leave, pass } = limiterOf('after-its-reservation', {
    concurrentRequests: 1,
    tokensPerMonth: 1000,
  });
  await reserve('late', TTL_MS);
  await pass(TTL_MS);
  expect(await reserve('next', LONG_MS)).toMatchObject({ admitted: true });
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
  const { reserve, pass, next } = limiterOf('along', {});
  await reserve('first', LONG_MS);
  await reserve('second', LONG_MS, [departure('first', 7)]);
  expect(await rowOf('along', 1)).toMatchObject({ cancelled: 1, completion_tokens: 7 });
  await pass(500);
  for (let index = 0; index < 20; index += 1) {
    await reserve(`more-${index}`, LONG_MS);
    expect(await next()).toBeGreaterThan(LONG_MS / 2);
  }
});

test('records only the settlement that arrives while the limiter asks the upstream', async () => {
  const { reserve, leave, settle, pass } = limiterOf('twice-ended', {});
  await reserve('r', LONG_MS);
  await leave('r', 3);
  const open: unknown[] = [];
  origin.answers.push(async () => {
    open.push(await settle({ ...departure('r', 9), inquire: false }));
    return null;
  });
  await pass(500);
  expect(open).toEqual([1]);
  await rowOf('twice-ended', 1);
  await pass(500);
  expect(await rowOf('twice-ended', 1)).toMatchObject({ requests: 1, completion_tokens: 9 });
});

test('bills the last account of a running request that the upstream then forgets', async () => {
  const { reserve, leave } = limiterOf('forgotten', {});
  await reserve('r', LONG_MS);
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
  const limiter = limiterOf('outlived', {});
  await outlive(limiter, 'r', 6);
  const lost = async () => Promise.reject(new Error('out of reach'));
  origin.answers.push(lost, async () => ({ usage: usageOf(9), finishReasons: [], ended: true }));
  await limiter.leave('r', 3);
  expect(await rowOf('outlived', 1)).toMatchObject({ cancelled: 1, completion_tokens: 9 });
});

test('accepts the settlement of a Worker that renews after its reservation expired', async () => {
  const limiter = limiterOf('back-again', {});
  await outlive(limiter, 'r', 15);
  await limiter.settle(ending('r', 700));
  expect(await rowOf('back-again', 1)).toMatchObject({ requests: 1, completed: 1, completion_tokens: 700 });
});

test('counts the tokens of a settlement that arrives after the reservation expired', async () => {
  const { reserve, settle, pass } = limiterOf('late', { concurrentRequests: 1, tokensPerMonth: 1_000 });
  await reserve('cut-off', TTL_MS);
  await pass(TTL_MS);
  expect(await reserve('next', LONG_MS)).toMatchObject({ admitted: true });
  await settle(ending('next', 4));
  expect(await settle(ending('cut-off', 988))).toBe(1);
  expect(await reserve('beyond', LONG_MS)).toMatchObject({ refusal: { kind: 'month', used: 992 } });
});
