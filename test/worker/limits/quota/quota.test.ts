import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import type { Spend } from '../../../../worker/limits/quota/budget.ts';
import type { ExceededLimit } from '../../../../worker/limits/quota/protocol.ts';
import * as quota from '../../../../worker/limits/quota/quota.ts';
import { goDuration, rateLimitHeaders } from '../../../../worker/limits/quota/rate-limit-headers.ts';
import {
  type Claim,
  type QuotaReservation,
  type Subject,
  type SubjectState,
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

/** Counters, and the running requests that are charged to them. */
class State extends Map<string, SubjectState> {
  readonly running = new Map<string, QuotaReservation>();

  get snapshot(): string {
    return JSON.stringify([[...this], [...this.running]]);
  }

  /** Returns the limit that a claim exceeds, if it does; else keeps its reservation. */
  #keep(id: string, result: QuotaReservation | ExceededLimit): ExceededLimit | null {
    if ('kind' in result) return result;
    this.running.set(id, result);
    return null;
  }

  reserve(claim: Claim, now: number): ExceededLimit | null {
    // Only their slots may come back.
    const slotOf = ({ subjects, charges: [first] }: QuotaReservation) => ({
      subjects,
      charges: [{ ...first!, tokens: 0, money: 0 }],
      isRunning: true,
    });
    const holders = () => [...this.running.values()].map(slotOf);
    return this.#keep(claim.id, quota.reserve(this, { ...claim, holders }, now));
  }

  raise(claim: Claim, grows: boolean, now: number): ExceededLimit | null {
    const reservation = this.running.get(claim.id);
    return reservation ? this.#keep(claim.id, quota.raise(this, reservation, { claim, grows }, now)) : null;
  }

  settle(id: string, spent: Spend): boolean {
    const reservation = this.running.get(id);
    if (reservation) quota.settle(this, reservation, spent, 1);
    return this.running.delete(id);
  }
}

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
          const state = new State();
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
              const settled = state.settle(id, { tokens: step.tokens, money: 0 });
              expect(settled).toBe(reference.settle(id, step.tokens));
            } else if (step.do === 'raise') {
              const id = ids[step.pick % Math.max(1, ids.length)] ?? 'unknown';
              const before = state.snapshot;
              const subjects = subjectsOf(ownersOf.get(id) ?? []);
              const refusal = state.raise(claim(id, subjects, step.tokens), step.grows, now);
              expect(refusal === null).toBe(reference.raise(id, step.tokens, step.grows, now));
              if (refusal) expect(state.snapshot).toBe(before);
            } else {
              const names = ['tenant', step.key];
              const subjects = subjectsOf(names);
              const id = `r${index}`;
              const before = state.snapshot;
              const fits = reference.fits(names, step.tokens, now);
              const refusal = state.reserve(claim(id, subjects, step.tokens), now);
              expect(refusal === null).toBe(fits);
              if (refusal) {
                expect(state.snapshot).toBe(before);
                const { retryAfterMs, kind } = refusal;
                if (retryAfterMs !== null && kind !== 'concurrency') {
                  const others = reference.runningOf('tenant') + reference.runningOf(step.key);
                  // Except for slots and budgets, the wait is exact: the request fits then, and not 1 ms
                  // earlier.
                  if (others === 0) expect(reference.fits(names, step.tokens, now + retryAfterMs)).toBe(true);
                  expect(reference.fits(names, step.tokens, now + retryAfterMs - 1)).toBe(false);
                }
              } else {
                reference.admit(id, names, step.tokens, now);
                ids.push(id);
                ownersOf.set(id, names);
              }
            }
            for (const name of ['tenant', 'a', 'b']) {
              expect(useOf(state, name, now).requests).toBe(reference.requestsOf(name, now));
              expect(useOf(state, name, now).tokens).toBe(reference.tokensOf(name, now));
              expect(useOf(state, name, now).concurrency).toBe(reference.runningOf(name));
            }
          }
        },
      ),
      { numRuns: runs(400) },
    );
  });

  test('admits a client that waits exactly retry-after', () => {
    const one = [subject({ requestsPerMinute: 3, tokensPerMinute: 100 })];
    const state = new State();
    for (const [index, tokens] of [60, 30, 5].entries()) {
      expect(state.reserve(claim(`r${index}`, one, tokens), START + index * 700)).toBeNull();
    }
    const refusal = state.reserve(claim('late', one, 50), START + 2000);
    expect(refusal).toMatchObject({ kind: 'requests', limit: 3, used: 3, retryAfterMs: 58_000 });
    expect(state.reserve(claim('early', one, 50), START + 2000 + 57_999)).not.toBeNull();
    expect(state.reserve(claim('late', one, 50), START + 2000 + 58_000)).toBeNull();
  });
});

describe('refusals', () => {
  test('admits exactly 50 of 200 concurrent claims with a limit of 50', () => {
    const one = [subject({ requestsPerMinute: 50 })];
    const state = new State();
    const passed = Array.from({ length: 200 }, (_, index) =>
      state.reserve(claim(`r${index}`, one), START + index * 10),
    );
    expect(passed.filter((refusal) => refusal === null)).toHaveLength(50);
  });

  test('rejects a request larger than its limit without retry-after', () => {
    const refusal = new State().reserve(claim('r', [subject({ tokensPerMinute: 10 })], 11), START);
    expect(refusal).toMatchObject({ kind: 'too_large', limit: 10, requested: 11, retryAfterMs: null });
  });

  test('takes retry-after from the limit with the longest wait', () => {
    const tenant = subject({ requestsPerMinute: 2, tokensPerMinute: 100 });
    const key = subject({ tokensPerMinute: 40 }, 'key');
    const state = new State();
    expect(state.reserve(claim('r1', [tenant], 10), START)).toBeNull();
    expect(state.reserve(claim('r2', [tenant, key], 40), START + 5000)).toBeNull();
    const late = claim('late', [tenant, key], 1);
    const refusal = state.reserve(late, START + 6000);
    expect(refusal).toMatchObject({ kind: 'tokens', subject: 'key', retryAfterMs: 59_000 });
    expect(state.reserve(late, START + 6000 + 59_000)).toBeNull();
  });

  test('frees expired amounts only once', () => {
    const one = [subject({ tokensPerMinute: 50 })];
    const state = new State();
    for (const [index, tokens] of [10, 40].entries()) {
      expect(state.reserve(claim(`r${index}`, one, tokens), START + index * 30_000)).toBeNull();
    }
    expect(state.reserve(claim('next', one, 20), START + 70_000)).toMatchObject({
      kind: 'tokens',
      used: 40,
      retryAfterMs: 20_000,
    });
  });

  test('reports a spent day before a full minute, until midnight UTC', () => {
    const one = [subject({ requestsPerMinute: 1, tokensPerDay: 10 })];
    const state = new State();
    expect(state.reserve(claim('r1', one, 10), START)).toBeNull();
    expect(state.reserve(claim('r2', one, 1), START)).toMatchObject({ kind: 'day', retryAfterMs: null });
    expect(state.reserve(claim('r3', one, 10), Date.UTC(2026, 1, 1))).toBeNull();
  });

  test('refunds unused tokens at settlement', () => {
    const one = [subject({ tokensPerMinute: 100, tokensPerDay: 100, tokensPerMonth: 100 })];
    const state = new State();
    expect(state.reserve(claim('r1', one, 100), START)).toBeNull();
    state.settle('r1', { tokens: 40, money: 0 });
    expect(state.reserve(claim('r2', one, 60), START + 500)).toBeNull();
  });

  test('applies the limits of the key and of its tenant', () => {
    const tenant = subject({ concurrentRequests: 2 });
    const state = new State();
    const key = subject({ concurrentRequests: 1 }, 'key');
    expect(state.reserve(claim('r1', [tenant, key]), START)).toBeNull();
    expect(state.reserve(claim('r2', [tenant, key]), START)).toMatchObject({
      kind: 'concurrency',
      subject: 'key',
    });
    expect(state.reserve(claim('r3', [tenant, subject({}, 'other')]), START)).toBeNull();
    expect(state.reserve(claim('r4', [tenant, subject({}, 'third')]), START)).toMatchObject({
      subject: 'tenant',
      retryAfterMs: 1000,
    });
  });
});

describe('the wait for a slot', () => {
  const waitAfter = (ages: readonly number[]) => {
    const one = subject({ concurrentRequests: ages.length });
    const state = new State();
    const now = START + 1_000_000;
    for (const [index, age] of ages.entries())
      state.reserve({ ...claim(`r${index}`, [one]), ttlMs: 1e9 }, now - age);
    return state.reserve(claim('last', [one]), now)?.retryAfterMs;
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
    const state = new State();
    const one = [subject({ requestsPerMinute: 3 })];
    expect(state.reserve(claim('r1', one), START + 2_000)).toBeNull();
    expect(state.reserve(claim('r2', one), START + 999)).toBeNull();
    expect(state.reserve(claim('r3', one), START + 999)).toBeNull();
    expect(state.reserve(claim('r4', one), START + 2_000)).toMatchObject({ used: 3, retryAfterMs: 58_000 });
  });

  test('keeps at most 60 cells per subject', () => {
    const state = new State();
    const one = subject({});
    for (let index = 0; index < 1000; index += 1) {
      state.reserve(claim(`r${index}`, [one]), START + index * 250);
      const { requests, tokens } = subjectState(state, one.id);
      expect(Math.max(requests.length, tokens.length)).toBeLessThanOrEqual(60);
    }
  });
});

describe('reservations', () => {
  test.each([300, 900, 1_100])(
    'cost %i, half of it reserved after midnight, is spent where it is charged',
    (cost) => {
      const state = new State();
      const tenant = subject({});
      state.reserve({ ...claim('long', [tenant]), money: 500 }, START);
      const tomorrow = START + 120_000;
      state.raise({ ...claim('long', [tenant]), money: 1_000 }, false, tomorrow);
      state.settle('long', { tokens: 1, money: cost });
      const { moneyDay, spentDay, balance, spentEver } = useOf(state, 'tenant', tomorrow);
      expect([spentDay, spentEver]).toEqual([Math.max(0, cost - 500), cost]);
      expect([moneyDay, balance]).toEqual([spentDay, spentEver]);
    },
  );

  test('that grow for long have few charges, and are refunded where their last tokens were charged', () => {
    const one = [subject({ tokensPerMinute: 1_000 })];
    const state = new State();
    const begin = Date.UTC(2026, 0, 31, 23, 40);
    const midnight = Date.UTC(2026, 1, 1);
    state.reserve(claim('r1', one, 10), begin);
    let now = begin;
    for (let total = 20; total <= 30_000; total += 10) {
      now += 1_000;
      expect(state.raise(claim('r1', one, total), true, now)).toBeNull();
    }
    expect(state.running.get('r1')!.charges.length).toBeLessThan(70);
    state.settle('r1', { tokens: 29_985, money: 0 });
    const today = 10 * ((now - midnight) / 1_000 + 1) - 15;
    expect(useOf(state, 'tenant', now)).toMatchObject({
      tokens: 585,
      day: today,
      month: today,
      concurrency: 0,
    });
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
    const state = new State();
    for (let count = 0; count < 8; count += 1) state.reserve(claim(`r${count}`, [tenant]), START);
    state.reserve(claim('own', [tenant, key]), START);
    state.settle('own', { tokens: 500, money: 0 });
    expect(rateLimitHeaders(state, [tenant, key], START)).toMatchObject({
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-remaining-tokens': '0',
    });
  });

  test('reports the tighter of tenant and key, and no missing limit', () => {
    const subjects = [subject({ requestsPerMinute: 10 }), subject({ requestsPerMinute: 4 }, 'key')];
    const state = new State();
    state.reserve(claim('r1', subjects), START);
    expect(rateLimitHeaders(state, subjects, START)).toEqual({
      'x-ratelimit-limit-requests': '4',
      'x-ratelimit-remaining-requests': '3',
      'x-ratelimit-reset-requests': '1m0s',
    });
  });
});
