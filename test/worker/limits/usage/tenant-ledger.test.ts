import fc from 'fast-check';
import { expect, test } from 'vitest';
import { requestName, reservationId } from '../../../../worker/limits/usage/reservation-id.ts';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import type { UsageRecord } from '../../../../worker/limits/usage/usage-record.ts';
import { DAY_MS, dayName, type UsageQuestion } from '../../../../worker/limits/usage/usage-sums.ts';
import { sqlStorage } from '../../support/sql-storage.ts';
import { EVERYTHING, recordOf } from './usage-fixtures.ts';

const JANUARY = Date.UTC(2026, 0, 1);

const newLedger = (records: readonly UsageRecord[] = []): TenantLedger => {
  const ledger = new TenantLedger(sqlStorage());
  if (records.length > 0) ledger.add(records, 1, JANUARY);
  return ledger;
};
const ask = (ledger: TenantLedger, question: Partial<UsageQuestion>) =>
  ledger.query({ ...EVERYTHING, ...question }, "o'acme");
const days = (ledger: TenantLedger, question: Partial<UsageQuestion> = {}) =>
  ask(ledger, question).rows.map(({ day, requests }) => [day, requests]);

test('sums all requests under the day on which each began', () => {
  const usage = { promptTokens: 5, cachedTokens: 3, completionTokens: 7 };
  const more = {
    usage,
    finishReasons: ['stop', 'length', 'length'] as const,
    cost: 21,
    latencyMs: 40,
    firstTokenMs: 9,
    startedAt: Date.UTC(2026, 0, 31, 23, 59, 59, 999),
  };
  const statuses = ['completed', 'failed', 'cancelled', 'abandoned'] as const;
  const ledger = newLedger(statuses.map((status) => recordOf({ status, ...more })));
  ledger.add(
    statuses.map((status) => recordOf({ status, ...more })),
    2,
    JANUARY,
  );
  expect(ask(ledger, { groups: ['day', 'tenant'] }).rows).toEqual([
    {
      day: '2026-01-31',
      tenant: "o'acme",
      requests: 8,
      completed: 2,
      failed: 2,
      cancelled: 2,
      abandoned: 2,
      finish_stop: 8,
      finish_length: 16,
      prompt_tokens: 40,
      cached_tokens: 24,
      completion_tokens: 56,
      cost_micros: 168,
      latency_ms: 320,
      first_token_ms: 72,
      first_tokens: 8,
    },
  ]);
});

test('filters by days (inclusive), key, model and end user, and pages by the groups', () => {
  const on = (day: number, keyId: string, model: string, endUser: string | null = null) =>
    recordOf({ keyId, model, endUser, startedAt: Date.UTC(2026, 1, day) });
  const ledger = newLedger([on(1, 'a', 'm'), on(2, 'a', 'n', 'u'), on(3, 'b', 'm'), on(4, 'b', 'n', 'v')]);
  const found = (question: Partial<UsageQuestion>) =>
    days(ledger, question).map(([day]) => String(day).slice(8));
  expect(found({})).toEqual(['01', '02', '03', '04']);
  expect(found({ from: '2026-02-02', to: '2026-02-03' })).toEqual(['02', '03']);
  expect(found({ keyId: 'a' })).toEqual(['01', '02']);
  expect(found({ model: 'm' })).toEqual(['01', '03']);
  expect(found({ keyId: 'b', model: 'n' })).toEqual(['04']);
  expect(found({ endUser: 'u' })).toEqual(['02']);
  expect(found({ after: ['2026-02-02'], limit: 1 })).toEqual(['03']);
  expect(ask(ledger, { limit: 1 }).total).toMatchObject({ requests: 4 });
  expect(ask(ledger, { groups: ['user'] }).rows.map(({ user }) => user)).toEqual(['u', 'v']);
  expect(ledger.lastUses(['a', 'b', 'none'])).toEqual([
    ['a', '2026-02-02'],
    ['b', '2026-02-04'],
  ]);
});

test('finds the last request of a name, whether the Worker or a caller has chosen it', () => {
  const ledger = newLedger();
  const own = requestName(JANUARY + 5, 'ab'.repeat(10));
  const named = (name: string, latencyMs: number) =>
    recordOf({
      requestId: reservationId({ isolate: 'i', slice: 0, number: 1, price: null, name }),
      latencyMs,
    });
  const others = Array.from({ length: 2_500 }, (_, index) => named(`other-${index}`, 0));
  ledger.add([...others, named(own, 1), named('mine.v1', 2)], 1, JANUARY + 60_000);
  ledger.add([named('mine.v1', 3), named('x'.repeat(128), 4)], 2, JANUARY + 60_000);
  const latency = (name: string) => ledger.requests.find(name)?.latencyMs;
  expect([own, 'mine.v1', 'x'.repeat(128), 'other-0', 'none'].map(latency)).toEqual([1, 3, 4, 0, undefined]);
  // A caller may choose a name that looks like one of the Worker.
  const late = requestName(0, 'ab'.repeat(10));
  ledger.add([named(late, 5)], 3, JANUARY + 60_000);
  expect(latency(late)).toBe(5);
  ledger.requests.prune(JANUARY + 60_003, []);
  expect([own, late].map(latency)).toEqual([undefined, 5]);
});

test('adds old days to the first day of their month, and keeps newer days', () => {
  const on = (day: string, keyId: string, promptTokens: number) =>
    recordOf({
      keyId,
      endUser: 'u',
      startedAt: Date.parse(day),
      usage: { promptTokens, cachedTokens: 0, completionTokens: 0 },
    });
  const ledger = newLedger([
    on('2026-01-01', 'k', 1),
    on('2026-01-02', 'k', 2),
    on('2026-01-31', 'other', 4),
    on('2026-02-10', 'k', 16),
    on('2026-02-11', 'k', 32),
  ]);
  const expected = [
    ['2026-01-01', 'k', 3],
    ['2026-01-01', 'other', 4],
    ['2026-02-01', 'k', 16],
    ['2026-02-11', 'k', 32],
  ];
  const rows = (...more: ('user' | 'key')[]) =>
    ask(ledger, { groups: ['day', 'key', ...more] }).rows.map(({ day, key, prompt_tokens: tokens }) => [
      day,
      key,
      tokens,
    ]);
  for (const number of [2, 3]) {
    ledger.rollUp('2026-02-11', number);
    expect(rows()).toEqual(expected);
    expect(rows('user')).toEqual(expected);
  }
  expect(ledger.tidyFrom(30, 400)).toBe(JANUARY + 30 * DAY_MS);
});

test('an erasure keeps sums by month and model without keys and end users, or nothing', () => {
  const on = (day: number, keyId: string) =>
    recordOf({ keyId, endUser: 'u', startedAt: Date.UTC(2026, 1, day) });
  const records = [on(3, 'a'), on(4, 'b')];
  for (const [keeps, left] of [
    [true, [['2026-02-01', '', 2]]],
    [false, []],
  ] as const) {
    const ledger = newLedger(records);
    for (const number of [2, 3]) {
      ledger.erase(keeps, number, []);
      const { rows } = ask(ledger, { groups: ['day', 'key'] });
      expect(rows.map(({ day, key, requests }) => [day, key, requests])).toEqual(left);
      expect([ask(ledger, { groups: ['user'] }).rows, ledger.requests.find('r')]).toEqual([[], null]);
    }
  }
});

test('a summary that takes the news has the sums of the ledger, whatever happens in between', () => {
  const at = fc.integer({ min: 0, max: 60 }).map((day) => JANUARY + day * DAY_MS);
  const adding = fc.record({ kind: fc.constant('add'), at, model: fc.constantFrom('m', 'n') });
  const action = fc.oneof(
    { weight: 4, arbitrary: adding },
    fc.record({ kind: fc.constantFrom('report', 'confirm', 'fail', 'restart'), at, model: fc.constant('') }),
    fc.record({ kind: fc.constant('roll up'), at, model: fc.constant('') }),
  );
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const sql = sqlStorage();
      let ledger = new TenantLedger(sql);
      let number = 0;
      const summary = new Map<string, number>();
      const report = () => {
        number += 1;
        for (const { day, model, sums } of ledger.news(number))
          if (sums === null) summary.delete(`${day} ${model}`);
          else summary.set(`${day} ${model}`, sums[0]!);
        return number;
      };
      let reported = 0;
      for (const { kind, at: startedAt, model } of actions) {
        number += 1;
        if (kind === 'add') ledger.add([recordOf({ startedAt, model })], number, null);
        else if (kind === 'roll up') ledger.rollUp(dayName(startedAt), number);
        else if (kind === 'report' || kind === 'fail') reported = report();
        else if (kind === 'confirm') ledger.confirm(reported);
        else ledger = new TenantLedger(sql);
      }
      ledger.confirm(report());
      const { rows } = ask(ledger, { groups: ['day', 'model'] });
      const held = rows.map(({ day, model, requests }) => [`${day} ${model}`, requests]);
      expect([...summary].toSorted()).toEqual(held.toSorted());
      expect(ledger.hasNews).toBe(false);
    }),
    { numRuns: 200 },
  );
});

test('lists the records before any number, the last one first, across rows and what retention has deleted', () => {
  const rows = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 12 });
  const shape = fc.record({
    rows,
    pruned: fc.nat(4),
    number: fc.nat(45),
    limit: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(
    fc.property(shape, ({ rows, pruned, number, limit }) => {
      const ledger = new TenantLedger(sqlStorage());
      // Of an older release, without numbers.
      ledger.add([recordOf({ requestId: 'old' })], 1, JANUARY - 1_000);
      const all: { readonly number: number; readonly at: number }[] = [];
      for (const [index, count] of rows.entries()) {
        const at = JANUARY + 1_000 * index;
        const records = Array.from({ length: count }, (_, place) =>
          recordOf({ requestId: `${all.length + place + 1}` }),
        );
        for (const _ of records) all.push({ number: all.length + 1, at });
        ledger.add(records, index + 2, at, all.length);
      }
      const from = JANUARY + 1_000 * pruned;
      ledger.requests.prune(from, []);
      const expected = all
        .filter((each) => each.number < number && each.at >= from)
        .map((each) => each.number);
      const found = ledger.requests.before(number, limit);
      expect(found.map((each) => each.number)).toEqual(expected.reverse().slice(0, limit));
      for (const each of found) expect(each.record.requestId).toBe(`${each.number}`);
    }),
  );
});
