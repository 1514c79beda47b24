import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { LimitAlerts } from '../../../../worker/limits/objects/limit-alerts.ts';
import { OldDeliveries } from '../../../../worker/limits/objects/old-deliveries.ts';
import { charge, emptyQuota } from '../../../../worker/limits/quota/state.ts';
import { DAY_MS, momentOf } from '../../../../worker/limits/quota/window.ts';
import type { OutgoingEvent } from '../../../../worker/limits/usage/event-queue.ts';
import type { UsageRecord } from '../../../../worker/limits/usage/usage-record.ts';
import { runs } from '../../../support/random.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

/** One day: limits per day and month count from the beginning. */
const DAY = Date.UTC(2030, 0, 1);

function tenantHome(shares: readonly number[]) {
  let now = DAY;
  let isKnown = true;
  const limits = { ...UNLIMITED, creditMicros: null as number | null };
  const sql = sqlStorage();
  const start = () => new LimitAlerts(sql, { shares, old: new OldDeliveries(sql), now: () => now });
  let events = start();
  const quota = emptyQuota();
  const taken: OutgoingEvent[] = [];
  /** The webhook takes what is new, so that it may be forgotten when it is old. */
  const take = () => taken.push(...events.after(taken.at(-1)?.position ?? 0, 99));
  const know = () => events.know([{ id: 'tenant', limits: { ...limits } }], 'acme', quota);
  return {
    set: (changes: Partial<typeof limits>) => Object.assign(limits, changes),
    at(ms: number) {
      now = ms;
    },
    pay(micros: number, at = ++now) {
      limits.creditMicros = (limits.creditMicros ?? 0) + micros;
      events.paid(limits.creditMicros, at, quota);
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
      charge(quota, ['tenant'], { spent: cost }, momentOf(now));
      const record = { cost, tenantId: 'acme', keyId: 'key', startedAt: endedAt, latencyMs: 0 };
      events.add([record as UsageRecord], quota);
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
  const home = tenantHome([50]);
  home.set({ microsPerDay: 10 });
  home.pay(100);
  home.spend(60);
  for (const day of [50, 51]) {
    home.at(DAY + day * DAY_MS);
    home.spend(9);
  }
  expect(home.alerts().map(([limit]) => limit)).toEqual([
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
    const home = tenantHome(SHARES);
    for (const micros of credits) home.pay(micros);
    for (const cost of costs) home.spend(cost);
    expect(home.alerts()).toEqual(expected.map((alert) => ['balance', ...alert]));
  });

  test('does not occur for what was spent before the last entry, also if the sum was the same before', () => {
    const home = tenantHome(SHARES);
    home.pay(100);
    home.spend(1);
    home.pay(100);
    home.spend(49);
    home.pay(-100);
    home.spend(2);
    expect(home.alerts()).toEqual([]);
  });

  test('does not occur for a request that had ended before the last entry and is reported after it', () => {
    const home = tenantHome(SHARES);
    home.pay(100, DAY + 10);
    home.spend(60, DAY + 9);
    expect(home.alerts()).toEqual([]);
    home.spend(20, DAY + 11);
    expect(home.alerts()).toEqual([['balance', 50, 40, 20]]);
  });

  test('occurs although the entry is repeated, and an older one arrives late', () => {
    const home = tenantHome(SHARES);
    home.at(DAY + 2);
    home.pay(100, DAY + 2);
    home.spend(30);
    home.pay(0, DAY + 2);
    home.pay(0, DAY + 1);
    home.spend(20);
    expect(home.alerts()).toEqual([['balance', 50, 100, 50]]);
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
        const home = tenantHome(SHARES);
        for (const { kind, micros } of all) {
          if (kind === 'restart') home.restart();
          else home[kind](micros);
        }
        expect(home.alerts()).toEqual(reference(all));
      }),
      { numRuns: runs(500) },
    );
  });
});

test('a limit that was reached before a restart is reported with the next call, also if that is refused', () => {
  const home = tenantHome(SHARES);
  home.set({ microsPerDay: 100 });
  home.restart();
  home.spend(100);
  expect(home.alerts()).toEqual([]);
  home.know();
  home.know();
  expect(home.alerts()).toEqual(SHARES.map((share) => ['micros_per_day', share, 100, 100]));
});
