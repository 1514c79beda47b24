import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { LimitAlerts } from '../../../../worker/limits/objects/limit-alerts.ts';
import { OldDeliveries } from '../../../../worker/limits/objects/old-deliveries.ts';
import { charge, type SubjectState } from '../../../../worker/limits/quota/state.ts';
import { momentOf } from '../../../../worker/limits/quota/window.ts';
import type { OutgoingEvent } from '../../../../worker/limits/usage/event-queue.ts';
import type { UsageRecord } from '../../../../worker/limits/usage/usage-record.ts';
import { DAY_MS } from '../../../../worker/limits/usage/usage-sums.ts';
import { runs } from '../../../support/random.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

/** One day: limits per day and month count from the beginning. */
const DAY = Date.UTC(2030, 0, 1);

function tenantObject(shares: readonly number[]) {
  let now = DAY;
  let isKnown = true;
  const limits = { ...UNLIMITED, creditMicros: null as number | null };
  const sql = sqlStorage();
  const counters = new Map<string, SubjectState>();
  const start = () => new LimitAlerts(sql, { shares, counters, old: new OldDeliveries(sql), now: () => now });
  let events = start();
  const taken: OutgoingEvent[] = [];
  /** The webhook takes what is new, so that it may be forgotten when it is old. */
  const take = () => taken.push(...events.after(taken.at(-1)?.position ?? 0, 99));
  const know = () => events.know([{ id: 'tenant', limits: { ...limits } }], 'acme');
  return {
    set: (changes: Partial<typeof limits>) => Object.assign(limits, changes),
    at(ms: number) {
      now = ms;
    },
    pay(micros: number, at = ++now) {
      limits.creditMicros = (limits.creditMicros ?? 0) + micros;
      events.paid(limits.creditMicros, at);
    },
    /** The object starts again, and the next request ends before another one calls. */
    restart() {
      events = start();
      isKnown = false;
    },
    know,
    spend(cost: number, endedAt = ++now) {
      if (isKnown) know();
      isKnown = true;
      charge(counters, ['tenant'], { spent: cost }, momentOf(now));
      const record = { cost, tenantId: 'acme', keyId: 'key', startedAt: endedAt, latencyMs: 0 };
      events.add([record as UsageRecord]);
      take();
    },
    alerts() {
      take();
      return taken
        .map(({ body }) => (JSON.parse(body) as { data: Record<string, unknown> }).data)
        .map((data) => [data.limit, data.share_percent, data.limit_micros, data.spent_micros]);
    },
  };
}

const SHARES = [50, 80, 100];

test('an alert of a balance occurs once, also if the balance lasts longer than all other limits', () => {
  const object = tenantObject([50]);
  object.set({ microsPerDay: 10 });
  object.pay(100);
  object.spend(60);
  for (const day of [50, 51]) {
    object.at(DAY + day * DAY_MS);
    object.spend(9);
  }
  expect(object.alerts().map(([limit]) => limit)).toEqual([
    ...['micros_per_day', 'balance', 'micros_per_day', 'micros_per_day'],
  ]);
});

describe('an alert of a balance', () => {
  test.each([
    [
      'one request takes most of it',
      [1_000],
      [900],
      [
        [50, 1_000, 900],
        [80, 1_000, 900],
      ],
    ],
    ['one request takes all of it', [1_000], [1_000], SHARES.map((share) => [share, 1_000, 1_000])],
    [
      'three take it',
      [100],
      [60, 20, 20],
      [
        [50, 100, 60],
        [80, 100, 80],
        [100, 100, 100],
      ],
    ],
  ])('occurs with the first request: %s', (_, credits, costs, expected) => {
    const object = tenantObject(SHARES);
    for (const micros of credits) object.pay(micros);
    for (const cost of costs) object.spend(cost);
    expect(object.alerts()).toEqual(expected.map((alert) => ['balance', ...alert]));
  });

  test('does not occur for what was spent before the last entry, also if the sum was the same before', () => {
    const object = tenantObject(SHARES);
    object.pay(100);
    object.spend(1);
    object.pay(100);
    object.spend(49);
    object.pay(-100);
    object.spend(2);
    expect(object.alerts()).toEqual([]);
  });

  test('does not occur for a request that had ended before the last entry and is reported after it', () => {
    const object = tenantObject(SHARES);
    object.pay(100, DAY + 10);
    object.spend(60, DAY + 9);
    expect(object.alerts()).toEqual([]);
    object.spend(20, DAY + 11);
    expect(object.alerts()).toEqual([['balance', 50, 40, 20]]);
  });

  test('occurs although the entry is repeated, and an older one arrives late', () => {
    const object = tenantObject(SHARES);
    object.at(DAY + 2);
    object.pay(100, DAY + 2);
    object.spend(30);
    object.pay(0, DAY + 2);
    object.pay(0, DAY + 1);
    object.spend(20);
    expect(object.alerts()).toEqual([['balance', 50, 100, 50]]);
  });

  /** What was paid in and spent, and the shares of each balance that were reached, as documented. */
  function reference(steps: readonly Step[]): unknown[] {
    let [credit, spent, before] = [0, 0, 0];
    let reached = new Set<number>();
    const alerts: unknown[] = [];
    for (const step of steps) {
      if (step.kind === 'pay') {
        credit += step.micros;
        before = spent;
        reached = new Set();
      } else if (step.kind === 'spend') {
        spent += step.micros;
        const had = credit - before;
        for (const share of SHARES) {
          if (had <= 0 || reached.has(share) || (spent - before) / had < share / 100) continue;
          reached.add(share);
          alerts.push(['balance', share, had, spent - before]);
        }
      }
    }
    return alerts;
  }

  type Step = { readonly kind: 'pay' | 'spend' | 'restart'; readonly micros: number };
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constant('pay' as const), micros: fc.integer({ min: -200, max: 200 }) }),
    fc.record({ kind: fc.constant('spend' as const), micros: fc.integer({ min: 1, max: 90 }) }),
    fc.constant({ kind: 'restart' as const, micros: 0 }),
  );

  test('is that of a plain reference, for any order of entries, requests and restarts', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const all: Step[] = [{ kind: 'pay', micros: 100 }, ...steps];
        const object = tenantObject(SHARES);
        for (const { kind, micros } of all) {
          if (kind === 'restart') object.restart();
          else object[kind](micros);
        }
        expect(object.alerts()).toEqual(reference(all));
      }),
      { numRuns: runs(500) },
    );
  });
});

test('a limit that was reached before a restart is reported with the next call, also if that is refused', () => {
  const object = tenantObject(SHARES);
  object.set({ microsPerDay: 100 });
  object.restart();
  object.spend(100);
  expect(object.alerts()).toEqual([]);
  object.know();
  object.know();
  expect(object.alerts()).toEqual(SHARES.map((share) => ['micros_per_day', share, 100, 100]));
});
