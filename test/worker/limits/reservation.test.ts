import { expect, test } from 'vitest';
import { ApiError } from '../../../shared/errors.ts';
import { type ApiKey, type Principal, type Tenant, UNLIMITED } from '../../../shared/tenant.ts';
import type { ReservationResult } from '../../../worker/env/limiter-protocol.ts';
import type { RequestContext } from '../../../worker/http/request-context.ts';
import { admit } from '../../../worker/limits/reservation.ts';
import { SettlementQueue } from '../../../worker/limits/settlement-queue.ts';
import { Timings } from '../../../worker/timers/timings.ts';

const TENANT: Tenant = {
  ...{ id: 'acme', name: 'Acme', suspended: false, limits: { ...UNLIMITED, tokensPerMinute: 100 } },
  ...{ weight: 1, dialect: 'openai' },
};
const KEY: ApiKey = {
  ...{ id: 'key', tenantId: 'acme', name: 'k', scopes: ['completions'], models: null },
  ...{ expiresAt: null, revokedAt: null, limits: UNLIMITED },
};
const CALLER: Principal = { tenant: TENANT, key: KEY };

type Reserved = Parameters<ReturnType<RequestContext['env']['LIMITER']['get']>['reserve']>;

/** A request's context before a limiter that answers with these results, or throws them. It records its calls. */
function contextBefore(results: (ReservationResult | Error)[]) {
  const calls: Reserved[] = [];
  const limiter = {
    async reserve(...reserved: Reserved) {
      calls.push(reserved);
      const result = results.shift()!;
      if (result instanceof Error) throw result;
      return result;
    },
  };
  const backoff = { random: () => 0.5, pause: async () => {} };
  const context = {
    env: { LIMITER: { idFromName: (name: string) => name, get: () => limiter } },
    ...{ requestId: 'r', region: null, answer: { limits: {} }, randomHex: () => 'ff', now: () => 0 },
    ...{ settings: { RESERVATION_TTL_MS: 30_000 }, timings: new Timings(() => 0), backoff },
    ...{ timers: { after: () => () => {} }, settlements: new SettlementQueue(backoff) },
  } as unknown as RequestContext;
  return { calls, context };
}

const ADMITTED: ReservationResult = { admitted: true, headers: {} };
const cost = { tokens: 10, model: 'm' };

test('a limiter that fails is not called again, and the next request settles what it may have reserved', async () => {
  const { calls, context } = contextBefore([new Error('lost'), ADMITTED]);
  await expect(admit(CALLER, cost, context)).rejects.toMatchObject({ status: 503 });
  expect(calls).toHaveLength(1);
  // No later step asks the limiter for headers.
  expect(context.answer.limits).toBeNull();
  await admit(CALLER, cost, context);
  const [[first], [, settlements]] = calls as [Reserved, Reserved];
  expect(settlements).toMatchObject([
    { requestId: first.requestId, settlement: { status: 'failed', usage: { completionTokens: 0 } } },
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

test('a refused reservation leaves nothing to settle', async () => {
  const refused: ReservationResult = { admitted: false, refusal: 'suspended', headers: {} };
  const { calls, context } = contextBefore([refused, ADMITTED]);
  await expect(admit(CALLER, cost, context)).rejects.toMatchObject({ status: 403 });
  await admit(CALLER, cost, context);
  expect(calls[1]?.[1]).toEqual([]);
});

test('a raise calls the limiter only if more tokens are needed than reserved and tokens are limited', async () => {
  const { calls, context } = contextBefore([ADMITTED, ADMITTED, ADMITTED]);
  const { raise } = await admit(CALLER, cost, context);
  await raise(10);
  expect(calls).toHaveLength(1);
  await raise(11);
  expect(calls[1]?.[0]).toMatchObject({ tokens: 11, raise: true, requestId: calls[0]![0].requestId });
  const unlimited = { ...CALLER, tenant: { ...TENANT, limits: { ...UNLIMITED, requestsPerMinute: 5 } } };
  await (await admit(unlimited, cost, context)).raise(1000);
  expect(calls).toHaveLength(3);
});
