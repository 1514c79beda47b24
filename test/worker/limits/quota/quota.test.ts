import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import {
  dueReservations,
  nextExpiry,
  raise,
  renew,
  reserve,
  settle,
  spend,
} from '../../../../worker/limits/quota/quota.ts';
import { goDuration, rateLimitHeaders } from '../../../../worker/limits/quota/rate-limit-headers.ts';
import {
  emptyQuota,
  type QuotaState,
  type Subject,
  subjectState,
  useOf,
} from '../../../../worker/limits/quota/state.ts';
import { runs } from '../../../support/random.ts';
import { ReferenceQuota } from './quota-reference.ts';

const START = Date.UTC(2026, 0, 31, 23, 58, 30);

const subject = (limits: Partial<Limits>, id = 'tenant'): Subject => ({
  id,
  limits: { ...UNLIMITED, ...limits },
});

const claim = (id: string, subjects: readonly Subject[], tokens = 1) => ({
  id,
  subjects,
  tokens,
  money: 0,
  ttlMs: 30_000,
});

const snapshot = (state: QuotaState): string =>
  JSON.stringify([[...state.subjects.entries()], [...state.reservations.entries()]]);

const maybe = (max: number) => fc.option(fc.integer({ min: 1, max }), { nil: null });

const anyLimits: fc.Arbitrary<Limits> = fc
  .record({
    requestsPerMinute: maybe(6),
    tokensPerMinute: maybe(60),
    concurrentRequests: maybe(4),
    tokensPerDay: maybe(200),
    tokensPerMonth: maybe(300),
  })
  .map((limits) => ({ ...UNLIMITED, ...limits }));

type Step =
  | { do: 'reserve'; key: 'a' | 'b'; tokens: number }
  | { do: 'settle'; pick: number; tokens: number }
  | { do: 'raise'; pick: number; tokens: number; grows: boolean }
  | { do: 'pass'; ms: number };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('reserve' as const),
    key: fc.constantFrom('a' as const, 'b' as const),
    tokens: fc.integer({ min: 0, max: 40 }),
  }),
  fc.record({ do: fc.constant('settle' as const), pick: fc.nat(99), tokens: fc.nat(50) }),
  fc.record({ do: fc.constant('raise' as const), pick: fc.nat(99), tokens: fc.nat(60), grows: fc.boolean() }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.oneof(fc.nat(1500), fc.nat(40_000)) }),
);

describe('quota compared with the reference', () => {
  test('agrees with the reference in every decision, counter and retry-after', () => {
    fc.assert(
      fc.property(
        anyLimits,
        anyLimits,
        fc.array(anyStep, { minLength: 1, maxLength: 60 }),
        (ofTenant, ofKey, steps) => {
          const limits = { tenant: ofTenant, a: ofKey, b: UNLIMITED };
          const reference = new ReferenceQuota(limits);
          const state = emptyQuota();
          let now = START;
          const ids: string[] = [];
          const subjectsOf = (names: readonly string[]) =>
            names.map((id) => ({ id, limits: limits[id as keyof typeof limits] }));
          const ownersOf = new Map<string, readonly string[]>();
          for (const [index, step] of steps.entries()) {
            if (step.do === 'pass') {
              now += step.ms;
            } else if (step.do === 'settle') {
              const id = ids[step.pick % Math.max(1, ids.length)] ?? 'unknown';
              const settled = settle(state, id, { tokens: step.tokens, money: 0 });
              expect(settled !== null).toBe(reference.settle(id, step.tokens));
            } else if (step.do === 'raise') {
              const id = ids[step.pick % Math.max(1, ids.length)] ?? 'unknown';
              const before = snapshot(state);
              const subjects = subjectsOf(ownersOf.get(id) ?? []);
              const refusal = raise(state, claim(id, subjects, step.tokens), step.grows, now);
              expect(refusal === null).toBe(reference.raise(id, step.tokens, step.grows, now));
              if (refusal) expect(snapshot(state)).toBe(before);
            } else {
              const names = ['tenant', step.key];
              const subjects = subjectsOf(names);
              const id = `r${index}`;
              const before = snapshot(state);
              const fits = reference.fits(names, step.tokens, now);
              const refusal = reserve(state, claim(id, subjects, step.tokens), now);
              expect(refusal === null).toBe(fits);
              if (refusal) {
                expect(snapshot(state)).toBe(before);
                const { retryAfterMs, kind } = refusal;
                if (retryAfterMs !== null && kind !== 'concurrency') {
                  const others = reference.runningOf('tenant') + reference.runningOf(step.key);
                  // Except for slots and budgets, the wait is exact: the request fits then, and not 1 ms
                  // earlier.
                  if (others === 0) expect(reference.fits(names, step.tokens, now + retryAfterMs)).toBe(true);
                  expect(reference.fits(names, step.tokens, now + retryAfterMs - 1)).toBe(false);
                }
              } else {
                reference.admit(id, names, step.tokens, now, 30_000);
                ids.push(id);
                ownersOf.set(id, names);
              }
            }
            for (const name of ['tenant', 'a', 'b']) {
              expect(useOf(state, name, now).requests).toBe(reference.requestsOf(name, now));
              expect(useOf(state, name, now).tokens).toBe(reference.tokensOf(name, now));
              expect(useOf(state, name, now).concurrency).toBe(reference.runningOf(name));
            }
            expect(dueReservations(state, now).sort()).toEqual(reference.due(now));
          }
        },
      ),
      { numRuns: runs(400) },
    );
  });

  test('admits a client that waits exactly retry-after', () => {
    const one = [subject({ requestsPerMinute: 3, tokensPerMinute: 100 })];
    const state = emptyQuota();
    for (const [index, tokens] of [60, 30, 5].entries()) {
      expect(reserve(state, claim(`r${index}`, one, tokens), START + index * 700)).toBeNull();
    }
    const refusal = reserve(state, claim('late', one, 50), START + 2000);
    expect(refusal).toMatchObject({ kind: 'requests', limit: 3, used: 3, retryAfterMs: 58_000 });
    expect(reserve(state, claim('early', one, 50), START + 2000 + 57_999)).not.toBeNull();
    expect(reserve(state, claim('late', one, 50), START + 2000 + 58_000)).toBeNull();
  });
});

describe('refusals', () => {
  test('admits exactly 50 of 200 concurrent claims with a limit of 50', () => {
    const one = [subject({ requestsPerMinute: 50 })];
    const state = emptyQuota();
    const passed = Array.from({ length: 200 }, (_, index) =>
      reserve(state, claim(`r${index}`, one), START + index * 10),
    );
    expect(passed.filter((refusal) => refusal === null)).toHaveLength(50);
  });

  test('rejects a request larger than its limit without retry-after', () => {
    const refusal = reserve(emptyQuota(), claim('r', [subject({ tokensPerMinute: 10 })], 11), START);
    expect(refusal).toMatchObject({ kind: 'too_large', limit: 10, requested: 11, retryAfterMs: null });
  });

  test('takes retry-after from the limit with the longest wait', () => {
    const tenant = subject({ requestsPerMinute: 2, tokensPerMinute: 100 });
    const key = subject({ tokensPerMinute: 40 }, 'key');
    const state = emptyQuota();
    expect(reserve(state, claim('r1', [tenant], 10), START)).toBeNull();
    expect(reserve(state, claim('r2', [tenant, key], 40), START + 5000)).toBeNull();
    const late = claim('late', [tenant, key], 1);
    const refusal = reserve(state, late, START + 6000);
    expect(refusal).toMatchObject({ kind: 'tokens', subject: 'key', retryAfterMs: 59_000 });
    expect(reserve(state, late, START + 6000 + 59_000)).toBeNull();
  });

  test('frees expired amounts only once', () => {
    const one = [subject({ tokensPerMinute: 50 })];
    const state = emptyQuota();
    for (const [index, tokens] of [10, 40].entries()) {
      expect(reserve(state, claim(`r${index}`, one, tokens), START + index * 30_000)).toBeNull();
    }
    expect(reserve(state, claim('next', one, 20), START + 70_000)).toMatchObject({
      kind: 'tokens',
      used: 40,
      retryAfterMs: 20_000,
    });
  });

  test('reports a spent day before a full minute, until midnight UTC', () => {
    const one = [subject({ requestsPerMinute: 1, tokensPerDay: 10 })];
    const state = emptyQuota();
    expect(reserve(state, claim('r1', one, 10), START)).toBeNull();
    expect(reserve(state, claim('r2', one, 1), START)).toMatchObject({ kind: 'day', retryAfterMs: null });
    expect(reserve(state, claim('r3', one, 10), Date.UTC(2026, 1, 1))).toBeNull();
  });

  test('refunds unused tokens at settlement', () => {
    const one = [subject({ tokensPerMinute: 100, tokensPerDay: 100, tokensPerMonth: 100 })];
    const state = emptyQuota();
    expect(reserve(state, claim('r1', one, 100), START)).toBeNull();
    settle(state, 'r1', { tokens: 40, money: 0 });
    expect(reserve(state, claim('r2', one, 60), START + 500)).toBeNull();
  });

  test('applies the limits of the key and of its tenant', () => {
    const tenant = subject({ concurrentRequests: 2 });
    const state = emptyQuota();
    const key = subject({ concurrentRequests: 1 }, 'key');
    expect(reserve(state, claim('r1', [tenant, key]), START)).toBeNull();
    expect(reserve(state, claim('r2', [tenant, key]), START)).toMatchObject({
      kind: 'concurrency',
      subject: 'key',
    });
    expect(reserve(state, claim('r3', [tenant, subject({}, 'other')]), START)).toBeNull();
    expect(reserve(state, claim('r4', [tenant, subject({}, 'third')]), START)).toMatchObject({
      subject: 'tenant',
      retryAfterMs: 1000,
    });
  });
});

describe('the wait for a slot', () => {
  const waitAfter = (ages: readonly number[]) => {
    const one = subject({ concurrentRequests: ages.length });
    const state = emptyQuota();
    const now = START + 1_000_000;
    for (const [index, age] of ages.entries())
      reserve(state, { ...claim(`r${index}`, [one]), ttlMs: 1e9 }, now - age);
    return reserve(state, claim('last', [one]), now)?.retryAfterMs;
  };

  test('is the mean age of the running requests, divided by their number', () => {
    expect(waitAfter([10_000, 20_000])).toBe(7_500);
    expect(waitAfter([12_000])).toBe(12_000);
  });

  test('is at least a second and at most half a minute', () => {
    expect(waitAfter([0, 100])).toBe(1_000);
    expect(waitAfter([600_000])).toBe(30_000);
  });
});

describe('windows', () => {
  test('count what is charged after the clock has stepped back', () => {
    const state = emptyQuota();
    const one = [subject({ requestsPerMinute: 3 })];
    expect(reserve(state, claim('r1', one), START + 2_000)).toBeNull();
    expect(reserve(state, claim('r2', one), START + 999)).toBeNull();
    expect(reserve(state, claim('r3', one), START + 999)).toBeNull();
    expect(reserve(state, claim('r4', one), START + 2_000)).toMatchObject({ used: 3, retryAfterMs: 58_000 });
  });

  test('keeps at most 60 cells per subject', () => {
    const state = emptyQuota();
    const one = subject({});
    for (let index = 0; index < 1000; index += 1) {
      reserve(state, claim(`r${index}`, [one]), START + index * 250);
      const { requests, tokens } = subjectState(state, one.id);
      expect(Math.max(requests.length, tokens.length)).toBeLessThanOrEqual(60);
    }
  });
});

describe('reservations', () => {
  test.each([300, 900, 1_100])(
    'cost %i, half of it reserved after midnight, is spent where it is charged',
    (cost) => {
      const state = emptyQuota();
      const tenant = subject({});
      reserve(state, { ...claim('long', [tenant]), money: 500 }, START);
      const tomorrow = START + 120_000;
      raise(state, { ...claim('long', [tenant]), money: 1_000 }, false, tomorrow);
      const settled = settle(state, 'long', { tokens: 1, money: cost })!;
      spend(state, settled, cost);
      const { moneyDay, spentDay, balance, spentEver } = useOf(state, 'tenant', tomorrow);
      expect([spentDay, spentEver]).toEqual([Math.max(0, cost - 500), cost]);
      expect([moneyDay, balance]).toEqual([spentDay, spentEver]);
    },
  );

  test('that grow for long have few charges, and are refunded where their last tokens were charged', () => {
    const one = [subject({ tokensPerMinute: 1_000 })];
    const state = emptyQuota();
    const begin = Date.UTC(2026, 0, 31, 23, 40);
    const midnight = Date.UTC(2026, 1, 1);
    reserve(state, claim('r1', one, 10), begin);
    let now = begin;
    for (let total = 20; total <= 30_000; total += 10) {
      now += 1_000;
      expect(raise(state, claim('r1', one, total), true, now)).toBeNull();
    }
    expect(state.reservations.get('r1')!.charges.length).toBeLessThan(70);
    settle(state, 'r1', { tokens: 29_985, money: 0 });
    const today = 10 * ((now - midnight) / 1_000 + 1) - 15;
    expect(useOf(state, 'tenant', now)).toMatchObject({
      tokens: 585,
      day: today,
      month: today,
      concurrency: 0,
    });
  });

  test('expires unless it is renewed', () => {
    const state = emptyQuota();
    reserve(state, claim('r1', [subject({})]), START);
    expect(nextExpiry(state)).toBe(START + 30_000);
    expect(renew(state, 'r1', START + 50_000)).toBe(true);
    expect(dueReservations(state, START + 49_999)).toEqual([]);
    expect(dueReservations(state, START + 50_000)).toEqual(['r1']);
    settle(state, 'r1', { tokens: 0, money: 0 });
    expect(renew(state, 'r1', START + 90_000)).toBe(false);
    expect(nextExpiry(state)).toBeNull();
  });
});

describe('headers', () => {
  test.each([
    [0, '0s'],
    [12, '12ms'],
    [1000, '1s'],
    [20_000, '20s'],
    [360_000, '6m0s'],
    [59_999, '59.999s'],
    [90_951, '1m30.951s'],
    [3_599_999, '59m59.999s'],
    [86_400_000, '24h0m0s'],
    [11.2, '12ms'],
  ])('formats %d ms as Go does: %s', (ms, text) => {
    expect(goDuration(ms)).toBe(text);
  });

  test('reports the limit with less left, and never a negative number', () => {
    const tenant = subject({ requestsPerMinute: 10, tokensPerMinute: 50 });
    const key = subject({ requestsPerMinute: 4 }, 'key');
    const state = emptyQuota();
    for (let count = 0; count < 8; count += 1) reserve(state, claim(`r${count}`, [tenant]), START);
    reserve(state, claim('own', [tenant, key]), START);
    settle(state, 'own', { tokens: 500, money: 0 });
    expect(rateLimitHeaders(state, [tenant, key], START)).toMatchObject({
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-remaining-tokens': '0',
    });
  });

  test('reports the tighter of tenant and key, and no missing limit', () => {
    const subjects = [subject({ requestsPerMinute: 10 }), subject({ requestsPerMinute: 4 }, 'key')];
    const state = emptyQuota();
    reserve(state, claim('r1', subjects), START);
    expect(rateLimitHeaders(state, subjects, START)).toEqual({
      'x-ratelimit-limit-requests': '4',
      'x-ratelimit-remaining-requests': '3',
      'x-ratelimit-reset-requests': '1m0s',
    });
  });
});
