import { expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import { type ApiKey, type Principal, type Tenant, UNLIMITED } from '../../../shared/tenant.ts';
import type {
  Block,
  LimiterAnswer,
  LimiterCall,
  ReservationResult,
} from '../../../worker/env/limiter-protocol.ts';
import type { RequestContext } from '../../../worker/http/request-context.ts';
import { LimiterClients } from '../../../worker/limits/limiter-client.ts';
import { BlockCache } from '../../../worker/limits/recent-blocks.ts';
import { admit } from '../../../worker/limits/reservation.ts';
import { Timings } from '../../../worker/timers/timings.ts';

const TENANT: Tenant = {
  ...{ id: 'acme', name: 'Acme', suspended: false, limits: { ...UNLIMITED, tokensPerMinute: 100 } },
  ...{ weight: 1, dialect: 'openai', openObjects: false, anyKeyOrder: false, aliases: {} },
};
const KEY: ApiKey = {
  ...{ id: 'key', tenantId: 'acme', name: 'k', scopes: ['completions'], role: null, models: null },
  ...{ expiresAt: null, allowedAddresses: null, revokedAt: null, limits: UNLIMITED },
};
const CALLER: Principal = { tenant: TENANT, key: KEY };

/** A request's context before a limiter that answers with these results, or throws them. It records the calls with requests. */
function contextBefore(results: (ReservationResult | Error | Promise<never>)[]) {
  const calls: LimiterCall[] = [];
  const limiter = {
    async exchange(call: LimiterCall): Promise<LimiterAnswer> {
      const cursor = call.first + call.decisions.length - 1;
      if (call.reservation === null) return { cursor, reservation: null, slices: [], blocked: [] };
      calls.push(call);
      const result = await results.shift()!;
      if (result instanceof Error) throw result;
      return { cursor, reservation: result, slices: [], blocked: [] };
    },
  };
  const context = {
    env: { LIMITER: { idFromName: (name: string) => name, get: () => limiter } },
    ...{ requestId: 'r', answer: { limits: {} }, randomHex: () => 'ff', now: () => 0 },
    ...{
      settings: { RESERVATION_TTL_MS: 30_000, REQUEST_TIMEOUT_MS: 60_000 },
      timings: new Timings(() => 0),
    },
    // Nothing runs in the background.
    ...{ backoff: { random: () => 0.5, pause: () => new Promise(() => {}) }, waitUntil: () => {} },
    ...{ timers: { after: () => () => {} }, limiters: new LimiterClients(() => 'isolate') },
    caller: { principal: CALLER, endUser: null },
  } as unknown as RequestContext;
  return { calls, context };
}

const ADMITTED: ReservationResult = { admitted: true, headers: {} };
const cost = { tokens: 10, most: 10, prompt: 10, model: 'm', price: null };

test('a limiter that fails is not called again, and the next request settles what it may have reserved', async () => {
  const { calls, context } = contextBefore([new Error('lost'), ADMITTED]);
  await expect(admit(CALLER, cost, context)).rejects.toMatchObject({ status: 503 });
  expect(calls).toHaveLength(1);
  // No later step asks the limiter for headers.
  expect(context.answer.limits).toBeNull();
  await admit(CALLER, cost, context);
  expect(calls[1]!.decisions).toMatchObject([
    {
      ...{ kind: 'settled', requestId: calls[0]!.reservation!.requestId },
      settlement: { status: 'failed', usage: { completionTokens: 0 } },
    },
  ]);
});

test('an overloaded limiter is a 429 with a random time to wait, and is not called again', async () => {
  const overloaded = Object.assign(new Error('too many requests queued'), { overloaded: true });
  const { calls, context } = contextBefore([overloaded]);
  const error = await admit(CALLER, cost, context).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 429,
    headers: { 'retry-after': '2', 'retry-after-ms': '2000', 'x-should-retry': 'true' },
  });
  expect(calls).toHaveLength(1);
});

test('a limiter that does not answer within ten seconds is a 503, and what it may have reserved is settled', async () => {
  const { calls, context } = contextBefore([new Promise<never>(() => {}), ADMITTED]);
  const waits: [ms: number, then: () => void][] = [];
  const after = (ms: number, then: () => void) => {
    waits.push([ms, then]);
    return () => {};
  };
  const hanging = admit(CALLER, cost, { ...context, timers: { after } } as unknown as RequestContext);
  await Promise.resolve();
  expect(waits.map(([ms]) => ms)).toEqual([10_000]);
  waits[0]![1]();
  await expect(hanging).rejects.toMatchObject({ status: 503 });
  await admit(CALLER, cost, context);
  expect(calls[1]!.decisions).toMatchObject([
    { kind: 'settled', requestId: calls[0]!.reservation!.requestId },
  ]);
});

test('a stream whose limiter has hung once is checked again, and ends when its key is revoked', async () => {
  const { context } = contextBefore([ADMITTED]);
  const late: (() => void)[] = [];
  const answers: Promise<Block | null>[] = [new Promise(() => {}), Promise.resolve('revoked')];
  const { LIMITER } = context.env as unknown as { LIMITER: { get: () => object } };
  const limiter = { ...LIMITER.get(), blockOf: () => answers.shift()! };
  let now = 0;
  const { block } = await admit(CALLER, cost, {
    ...{ ...context, env: { LIMITER: { ...LIMITER, get: () => limiter } } },
    blocks: new BlockCache(() => now),
    timers: {
      after: (_: number, then: () => void) => {
        late.push(then);
        return () => {};
      },
    },
  } as unknown as RequestContext);
  const first = block();
  await Promise.resolve();
  for (const then of [...late]) then();
  expect(await first).toBeNull();
  now = 1_000;
  expect(await block()).toMatchObject({ status: 401 });
});

test('a refused reservation leaves nothing to settle', async () => {
  const refused: ReservationResult = { admitted: false, refusal: 'suspended', headers: {} };
  const { calls, context } = contextBefore([refused, ADMITTED]);
  await expect(admit(CALLER, cost, context)).rejects.toMatchObject({ status: 403 });
  await admit(CALLER, cost, context);
  expect(calls[1]!.decisions).toEqual([]);
});

test('the limiter is asked only about prompts with more tokens than reserved, if tokens are limited', async () => {
  const { calls, context } = contextBefore([ADMITTED, ADMITTED, ADMITTED]);
  const { id, begin } = await admit(CALLER, cost, context);
  await begin({ tokens: 10, most: 10, prompt: 10 });
  expect(calls).toHaveLength(1);
  await begin({ tokens: 11, most: 11, prompt: 11 });
  expect(calls[1]!.reservation).toMatchObject({ tokens: 11, raise: 'prompt', requestId: id });
  const unlimited = { ...CALLER, tenant: { ...TENANT, limits: { ...UNLIMITED, requestsPerMinute: 5 } } };
  await (await admit(unlimited, cost, context)).begin({ tokens: 1000, most: 1000, prompt: 1000 });
  expect(calls).toHaveLength(3);
});
