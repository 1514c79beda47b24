import { expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import { IsolateCalls } from '../../../../worker/limits/objects/isolate-calls.ts';
import { IsolateSlices } from '../../../../worker/limits/objects/isolate-slices.ts';
import { LimiterStorage } from '../../../../worker/limits/objects/limiter-storage.ts';
import { LostIsolates } from '../../../../worker/limits/objects/lost-isolates.ts';
import { OpenRequests } from '../../../../worker/limits/objects/open-requests.ts';
import type { Decision, LimiterCall, LimiterReply } from '../../../../worker/limits/quota/protocol.ts';
import { SLICE_GRACE_MS, SLICE_MS } from '../../../../worker/limits/quota/slice.ts';
import { useOf } from '../../../../worker/limits/quota/state.ts';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

const START = Date.UTC(2026, 0, 15, 12);

function newObject() {
  const sql = sqlStorage();
  const storage = new LimiterStorage(sql, new TenantLedger(sql), () => null);
  const requests = new OpenRequests(storage, { of: () => null });
  const slices = new IsolateSlices(requests, storage, { know: () => {} });
  return {
    storage,
    requests,
    slices,
    calls: new IsolateCalls(slices, requests),
    lost: new LostIsolates(slices, requests),
  };
}

const claimant = (requestsPerMinute: number) => ({
  tenantId: 'tenant',
  keyId: 'key',
  model: 'tiny',
  tokens: 1,
  money: 0,
  price: null,
  ttlMs: 30_000,
  tenantLimits: { ...UNLIMITED, requestsPerMinute },
  keyLimits: UNLIMITED,
});

const callOf = (isolate: string, number: number, more: Partial<LimiterCall>): LimiterCall => ({
  isolate,
  number,
  first: 1,
  decisions: [],
  renewals: [],
  reservation: null,
  sliceRequests: [],
  ...more,
});

test('asks upstreams that do not answer about a lost isolate again after ten seconds, not with every alarm', () => {
  const object = newObject();
  object.calls.exchange(callOf('i', 1, { sliceRequests: [claimant(80)] }), START);
  const end = START + SLICE_MS + SLICE_GRACE_MS;
  object.slices.endDue(end);
  expect(object.slices.lost(end)).toEqual(['i']);
  object.lost.settle('i', null, end);
  expect([object.slices.lost(end + 500), object.storage.isolates.nextDue()]).toEqual([[], end + 10_000]);
  expect(object.slices.lost(end + 10_000)).toEqual(['i']);
});

test('applies lowered limits to what slices hold as soon as they return', () => {
  const object = newObject();
  const { slices } = object.calls.exchange(callOf('i', 1, { sliceRequests: [claimant(80)] }), START);
  expect(slices).toMatchObject([{ number: 1, amounts: { requests: 10 } }]);
  let count = 0;
  const ask = (): LimiterReply => {
    count += 1;
    const reservation = { ...claimant(5), requestId: `j.0.${count}.p.r` };
    return object.calls.exchange(
      callOf('j', count, { reservation, sliceRequests: [claimant(5)] }),
      START + 1_000,
    );
  };
  expect(ask()).toMatchObject({ reservation: { admitted: false, refusal: { used: 10 } }, slices: [] });
  const decisions = [1, 2, 3].map((number): Decision => {
    const requestId = `i.1.${number}.p.r`;
    return { kind: 'admitted', requestId, slice: 1, model: 'tiny', tokens: 1, money: 0, at: START };
  });
  object.calls.exchange(
    callOf('i', 2, { decisions: [...decisions, { kind: 'returned', slice: 1 }] }),
    START + 1_000,
  );
  expect([ask(), ask(), ask()].map(({ reservation }) => reservation?.admitted)).toEqual([true, true, false]);
});

test('lets a completion wait for slices of the budget that it lacks, not for those of other keys', () => {
  const object = newObject();
  const tenantLimits = { ...UNLIMITED, tokensPerDay: 200 };
  const grow = (keyId: string, keyLimits: Limits) => {
    const request = { ...claimant(80), keyId, tenantLimits, keyLimits, requestId: `j.0.${keyId}.p.r` };
    object.calls.exchange(callOf(keyId, 1, { reservation: { ...request, tokens: 50 } }), START);
    const reservation = { ...request, tokens: 1_000, raise: 'growth' as const };
    object.calls.exchange(callOf(keyId, 2, { reservation }), START);
    return object.calls.exchange(callOf(keyId, 3, { reservation }), START).reservation;
  };
  object.calls.exchange(
    callOf('i', 1, { sliceRequests: [{ ...claimant(80), keyId: 'busy', tenantLimits }] }),
    START,
  );
  const own = { kind: 'day', subject: 'spent', retryAfterMs: null };
  expect(grow('spent', { ...UNLIMITED, tokensPerDay: 50 })).toMatchObject({ refusal: own });
  const shared = { kind: 'day', subject: 'tenant', retryAfterMs: 500, held: true };
  expect(grow('open', UNLIMITED)).toMatchObject({ refusal: shared });
});

test('a thousand isolates that come one after the other all get a part of a budget, and the object keeps some', () => {
  const object = newObject();
  const most = { requests: 32, tokens: 32, money: 0, slots: 32 };
  const holder = { ...claimant(40_000), most };
  const isolates = Array.from({ length: 1_000 }, (_, index) => `i${index}`);
  const first = isolates.map((isolate) =>
    object.calls.exchange(callOf(isolate, 1, { sliceRequests: [holder] }), START),
  );
  const amounts = first.map(({ slices }) => slices[0]?.amounts.requests ?? 0);
  expect([Math.max(...amounts), Math.min(...amounts)]).toEqual([32, expect.any(Number)]);
  expect(Math.min(...amounts)).toBeGreaterThan(1);
  const reservation = { ...claimant(40_000), requestId: 'late.0.1.p.r' };
  expect(object.calls.exchange(callOf('late', 1, { reservation }), START).reservation).toMatchObject({
    admitted: true,
  });
});

test('lets few isolates report as they like, and many take turns, each within 1.1 s', () => {
  const object = newObject();
  const next = (isolate: string, number: number, at: number) =>
    object.calls.exchange(callOf(isolate, number, {}), START + at).nextInMs!;
  expect([next('a', 1, 0), next('b', 1, 100), next('a', 2, 200)]).toEqual([0, 0, 0]);
  const many = Array.from({ length: 1_000 }, (_, index) => next(`i${index}`, 1, 1_000));
  expect([many[1], many[2], Math.max(...many)]).toEqual([25, 50, 1_100]);
  expect(next('a', 3, 2_500)).toBe(0);
});

test('a request begins between the grant of its slice and the report, whatever the clock of the isolate says', () => {
  const object = newObject();
  object.calls.exchange(callOf('i', 1, { sliceRequests: [claimant(80)] }), START);
  const admitted = (number: number, at: number): Decision => {
    const requestId = `i.1.${number}.p.r`;
    return { kind: 'admitted', requestId, slice: 1, model: 'tiny', tokens: 1, money: 0, at };
  };
  const decisions = [
    admitted(1, START - 3_600_000),
    admitted(2, START + 500),
    admitted(3, START + 3_600_000),
  ];
  object.calls.exchange(callOf('i', 2, { decisions }), START + 1_000);
  const opened = [1, 2, 3].map((number) => object.requests.find(`i.1.${number}.p.r`)?.record.startedAt);
  expect(opened).toEqual([START, START + 500, START + 1_000]);
});

test('a request of an end user is billed for no more than it has reserved, if its isolate vanishes', () => {
  const object = newObject();
  const tenantLimits = { ...UNLIMITED, tokensPerDay: 8_000 };
  const endUser = { hash: 'u', limits: { ...UNLIMITED, tokensPerDay: 500 } };
  const request = { ...claimant(80), tenantLimits, tokens: 300, requestId: 'i.0.1.p.r', endUser };
  const sliceRequests = [{ ...claimant(80), tenantLimits }];
  object.calls.exchange(callOf('i', 1, { reservation: request, sliceRequests }), START);
  const end = START + SLICE_MS + SLICE_GRACE_MS;
  object.slices.endDue(end);
  const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 400 };
  object.lost.settle('i', [{ account: request.requestId, model: 'tiny', usage, ageMs: 0 }], end);
  const today = (id: string) => useOf(object.storage.counters, id, end).day;
  expect([today('tenant'), today('key'), today('user:u')]).toEqual([300, 300, 300]);
});

test('ignores decisions about slices that it has not granted, or has taken back', () => {
  const object = newObject();
  object.calls.exchange(callOf('i', 1, { sliceRequests: [claimant(80)] }), START);
  const late: Decision = {
    kind: 'admitted',
    requestId: 'i.1.1.p.r',
    slice: 1,
    model: 'tiny',
    tokens: 1,
    money: 0,
    at: START,
  };
  const decisions: Decision[] = [{ kind: 'returned', slice: 1 }, late, { ...late, slice: 2 }];
  object.calls.exchange(callOf('i', 2, { decisions }), START);
  const reservation = { ...claimant(80), requestId: 'i.0.2.p.r', probe: true };
  const { reservation: result } = object.calls.exchange(callOf('i', 3, { reservation }), START);
  expect(result?.headers['x-ratelimit-remaining-requests']).toBe('80');
});

test('isolates that version 0.2.0 stored, and many more, are there after restarts', () => {
  const sql = sqlStorage();
  const stateOf = (number: number) => ({ cursor: number, granted: 1, named: 0, slices: [], heardAt: START });
  sql.exec('CREATE TABLE isolates (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID');
  sql.exec('INSERT INTO isolates (id, state) VALUES (?, ?)', 'old', JSON.stringify(stateOf(7)));
  const open = () => new LimiterStorage(sql, new TenantLedger(sql), () => null);
  const names = Array.from({ length: 200 }, (_, number) => `i${number}`);
  const storage = open();
  for (const [number, name] of names.entries()) storage.isolates.set(name, stateOf(number));
  storage.isolates.delete('i1');
  storage.commit();
  const kept = names.flatMap((name, number) => (number === 1 ? [] : [[name, stateOf(number)]]));
  const all = new Map([['old', stateOf(7)], ...(kept as [string, object][])]);
  expect(new Map(open().isolates.all())).toEqual(all);
  open().checkpoint();
  expect(new Map(open().isolates.all())).toEqual(all);
  expect(sql.exec('SELECT COUNT(*) AS rows FROM isolate_rows').one()).toEqual({ rows: 4 });
});
