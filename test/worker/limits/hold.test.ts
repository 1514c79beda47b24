import { expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import { type ApiKey, type Principal, type Tenant, UNLIMITED } from '../../../shared/tenant.ts';
import type { RequestContext } from '../../../worker/http/request-context.ts';
import { begin } from '../../../worker/limits/hold.ts';
import { IsolateLimiters } from '../../../worker/limits/isolate-limiter.ts';
import type {
  Block,
  LimiterCall,
  LimiterReply,
  ReservationResult,
} from '../../../worker/limits/quota/protocol.ts';
import { RecentBlocks } from '../../../worker/limits/recent-blocks.ts';
import { Timings } from '../../../worker/timers/timings.ts';

const TENANT: Tenant = {
  id: 'acme',
  name: 'Acme',
  suspended: false,
  limits: { ...UNLIMITED, tokensPerMinute: 100 },
  weight: 1,
  dialect: 'openai',
  openObjects: false,
  anyKeyOrder: false,
  waitForTokens: false,
  aliases: {},
};
const KEY: ApiKey = {
  id: 'key',
  tenantId: 'acme',
  name: 'k',
  scopes: ['completions'],
  role: null,
  models: null,
  expiresAt: null,
  allowedAddresses: null,
  revokedAt: null,
  limits: UNLIMITED,
};
const CALLER: Principal = { tenant: TENANT, key: KEY };

/** A request's context before a limiter that returns or throws these results. It records calls. */
function contextBefore(results: (ReservationResult | Error | Promise<never>)[]) {
  const calls: LimiterCall[] = [];
  const limiter = {
    async exchange(call: LimiterCall): Promise<LimiterReply> {
      const cursor = call.first + call.decisions.length - 1;
      if (call.reservation === null)
        return { cursor, reservation: null, slices: [], blocked: [], nextInMs: 0 };
      calls.push(call);
      const result = await results.shift()!;
      if (result instanceof Error) throw result;
      return { cursor, reservation: result, slices: [], blocked: [], nextInMs: 0 };
    },
  };
  const context = {
    env: { LIMITER: { idFromName: (name: string) => name, get: () => limiter } },
    requestId: 'r',
    reply: { limits: {} },
    randomHex: () => 'ff',
    now: () => 0,
    settings: { RESERVATION_TTL_MS: 30_000, REQUEST_TIMEOUT_MS: 60_000 },
    timings: new Timings(() => 0),
    // Nothing runs in the background.
    backoff: { random: () => 0.5, pause: () => new Promise(() => {}) },
    waitUntil: () => {},
    timers: { after: () => () => {} },
    limiters: new IsolateLimiters(() => 'isolate'),
    caller: { principal: CALLER, endUser: null },
    batchKey: null,
    currentPrincipal: async (caller: Principal) => caller,
  } as unknown as RequestContext;
  return { calls, context };
}

const contextWith = (context: RequestContext, changes: object) =>
  ({ ...context, ...changes }) as unknown as RequestContext;

/** Timers that the test runs. */
class Timers {
  readonly waits = new Set<readonly [ms: number, then: () => void]>();
  readonly after = (ms: number, then: () => void): (() => void) => {
    const wait = [ms, then] as const;
    this.waits.add(wait);
    return () => void this.waits.delete(wait);
  };

  run(): void {
    for (const wait of [...this.waits]) if (this.waits.delete(wait)) wait[1]();
  }
}

const ADMITTED: ReservationResult = { admitted: true, headers: {} };
const refusedBy = (kind: 'tokens' | 'day', retryAfterMs: number | null, held?: true): ReservationResult => ({
  admitted: false,
  headers: {},
  refusal: {
    kind,
    subject: 'tenant',
    limit: 9,
    used: 9,
    requested: 1,
    retryAfterMs,
    ...(held && { held }),
  },
});
const cost = { tokens: 10, most: 10, prompt: 10, model: 'm', price: null };

test('a limiter that fails is not called again, and the next request settles what it may have reserved', async () => {
  const { calls, context } = contextBefore([new Error('lost'), ADMITTED]);
  await expect(begin(CALLER, cost, context)).rejects.toMatchObject({ status: 503 });
  expect(calls).toHaveLength(1);
  // No later step asks the limiter for headers.
  expect(context.reply.limits).toBeNull();
  await begin(CALLER, cost, context);
  expect(calls[1]!.decisions).toMatchObject([
    {
      kind: 'settled',
      requestId: calls[0]!.reservation!.requestId,
      settlement: { status: 'failed', usage: { completionTokens: 0 } },
    },
  ]);
});

test('an overloaded limiter is a 429 with a random time to wait, and is not called again', async () => {
  const overloaded = Object.assign(new Error('too many requests queued'), { overloaded: true });
  const { calls, context } = contextBefore([overloaded]);
  const error = await begin(CALLER, cost, context).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 429,
    headers: { 'retry-after': '2', 'retry-after-ms': '2000', 'x-should-retry': 'true' },
  });
  expect(calls).toHaveLength(1);
});

test('a limiter that does not answer within ten seconds is a 503, and what it may have reserved is settled', async () => {
  const { calls, context } = contextBefore([new Promise<never>(() => {}), ADMITTED]);
  const timers = new Timers();
  const hanging = begin(CALLER, cost, contextWith(context, { timers }));
  await Promise.resolve();
  expect([...timers.waits].map(([ms]) => ms)).toEqual([10_000]);
  timers.run();
  await expect(hanging).rejects.toMatchObject({ status: 503 });
  await begin(CALLER, cost, context);
  expect(calls[1]!.decisions).toMatchObject([
    { kind: 'settled', requestId: calls[0]!.reservation!.requestId },
  ]);
});

test('a check for a block ends after ten seconds if the limiter hangs, so that the next check asks again', async () => {
  const { context } = contextBefore([ADMITTED]);
  const timers = new Timers();
  let now = 0;
  const recentBlocks = new RecentBlocks(() => now);
  const answers: Promise<Block | null>[] = [new Promise(() => {}), Promise.resolve('revoked')];
  const get = context.env.LIMITER.get as unknown as () => object;
  const limiter = { ...get(), blockOf: () => answers.shift() };
  const env = { LIMITER: { idFromName: (name: string) => name, get: () => limiter } };
  const hold = await begin(CALLER, cost, contextWith(context, { env, timers, recentBlocks }));
  const hanging = hold.block();
  timers.run();
  expect(await hanging).toBeNull();
  now = 2_000;
  expect(await hold.block()).toMatchObject({ status: 401 });
});

test('a completion grows within the limits that its tenant has now', async () => {
  const { calls, context } = contextBefore([ADMITTED, refusedBy('day', null)]);
  const timers = new Timers();
  const lowered = { ...CALLER, tenant: { ...TENANT, limits: { ...UNLIMITED, tokensPerMinute: 50 } } };
  const currentPrincipal = async () => lowered;
  const more = { ...cost, most: 90 };
  const hold = await begin(CALLER, more, contextWith(context, { currentPrincipal, timers }));
  timers.run();
  await new Promise(setImmediate);
  expect(await hold.spend(20)).toBe('tokens_per_day');
  expect(calls[1]!.reservation).toMatchObject({ raise: 'growth', tenantLimits: { tokensPerMinute: 50 } });
});

test.each([
  ['a revoked key', { key: { ...KEY, revokedAt: 0 } }, 401],
  ['a suspended tenant', { tenant: { ...TENANT, suspended: true } }, 403],
] as const)('a completion of %s ends although its limiter was never told', async (_, changed, status) => {
  const { context } = contextBefore([ADMITTED, ADMITTED]);
  const timers = new Timers();
  const recentBlocks = { of: async () => null };
  const currentPrincipal = async () => ({ ...CALLER, ...changed });
  for (const limits of [UNLIMITED, TENANT.limits]) {
    const caller = { ...CALLER, tenant: { ...TENANT, limits } };
    const hold = await begin(caller, cost, contextWith(context, { recentBlocks, currentPrincipal, timers }));
    expect(await hold.block()).toBeNull();
    timers.run();
    await new Promise(setImmediate);
    expect(await hold.block()).toMatchObject({ status });
  }
});

test('a completion ends when its key expires', async () => {
  const { context } = contextBefore([ADMITTED]);
  let now = 0;
  const recentBlocks = { of: async () => null };
  const caller = { ...CALLER, key: { ...KEY, expiresAt: 10_000 } };
  const hold = await begin(
    caller,
    cost,
    contextWith(context, { recentBlocks, timers: new Timers(), now: () => now }),
  );
  now = 9_999;
  expect(await hold.block()).toBeNull();
  now = 10_000;
  expect(await hold.block()).toMatchObject({ status: 401 });
});

test('a completion is charged to its end user until its end, also if end users have no limits any more', async () => {
  const { calls, context } = contextBefore([ADMITTED, refusedBy('day', null)]);
  const timers = new Timers();
  const limits = { ...TENANT.limits, userTokensPerDay: 90 };
  const caller = { ...CALLER, tenant: { ...TENANT, limits } };
  const currentPrincipal = async () => CALLER;
  const named = contextWith(context, {
    caller: { principal: caller, endUser: 'hash' },
    currentPrincipal,
    timers,
  });
  const hold = await begin(caller, { ...cost, most: 90 }, named);
  timers.run();
  await new Promise(setImmediate);
  await hold.spend(20);
  expect(calls[1]!.reservation).toMatchObject({ raise: 'growth', endUser: { hash: 'hash' } });
});

test.each([
  ['ends', 'the minute', {}, {}, false],
  ['waits', 'the minute, if its tenant chose that', { waitForTokens: true }, {}, true],
  ['waits', 'the minute in a batch', {}, { batchKey: 'key' }, true],
  ['waits', 'what isolates hold unused', {}, {}, true, true],
] as const)('a completion %s at the end of %s', async (_, __, tenant, more, waits, held?: true) => {
  const { context } = contextBefore([ADMITTED, refusedBy('tokens', 700, held)]);
  const pauses: number[] = [];
  const pause = (ms: number) => new Promise(() => pauses.push(ms));
  const caller = { ...CALLER, tenant: { ...TENANT, ...tenant } };
  const changed = contextWith(context, { ...more, backoff: { ...context.backoff, pause } });
  const hold = await begin(caller, { ...cost, most: 90 }, changed);
  const ended: (string | null)[] = [];
  void hold.spend(20)!.then((limit) => ended.push(limit));
  await new Promise(setImmediate);
  expect([ended, pauses.includes(700)]).toEqual([waits ? [] : ['tokens_per_minute'], waits]);
});

test('a refused reservation leaves nothing to settle', async () => {
  const refused: ReservationResult = { admitted: false, refusal: 'suspended', headers: {} };
  const { calls, context } = contextBefore([refused, ADMITTED]);
  await expect(begin(CALLER, cost, context)).rejects.toMatchObject({ status: 403 });
  await begin(CALLER, cost, context);
  expect(calls[1]!.decisions).toEqual([]);
});

test('the limiter is asked only about prompts with more tokens than reserved, if tokens are limited', async () => {
  const { calls, context } = contextBefore([ADMITTED, ADMITTED, ADMITTED]);
  const hold = await begin(CALLER, cost, context);
  await hold.counted({ tokens: 10, most: 10, prompt: 10 });
  expect(calls).toHaveLength(1);
  await hold.counted({ tokens: 11, most: 11, prompt: 11 });
  expect(calls[1]!.reservation).toMatchObject({ tokens: 11, raise: 'prompt', requestId: hold.id });
  const unlimited = { ...CALLER, tenant: { ...TENANT, limits: { ...UNLIMITED, requestsPerMinute: 5 } } };
  await (await begin(unlimited, cost, context)).counted({ tokens: 1000, most: 1000, prompt: 1000 });
  expect(calls).toHaveLength(3);
});
