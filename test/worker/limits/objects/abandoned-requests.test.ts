import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { LimiterStorage } from '../../../../worker/limits/objects/limiter-storage.ts';
import { OpenRequests } from '../../../../worker/limits/objects/open-requests.ts';
import { recordAfter } from '../../../../worker/limits/objects/usage-inquiry.ts';
import { useOf } from '../../../../worker/limits/quota/state.ts';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { sqlStorage } from '../../support/sql-storage.ts';

const TTL = 30_000;
const START = 1_000_000;

function newRequests() {
  const sql = sqlStorage();
  const storage = new LimiterStorage(sql, new TenantLedger(sql), () => null);
  const requests = new OpenRequests(storage, { of: () => null });
  /** The name of the request is that of its key. */
  const reserve = (name: string, tokens = 1, tokensPerDay: number | null = null) => {
    const limits = { tenantLimits: UNLIMITED, keyLimits: { ...UNLIMITED, tokensPerDay } };
    const subjects = { tenantId: 't', keyId: name, requestId: name, ...limits };
    requests.reserve({ ...subjects, model: 'm', price: null, money: 0, tokens, ttlMs: TTL }, START);
  };
  return { storage, requests, reserve };
}
const usage = { promptTokens: 4, cachedTokens: 0, completionTokens: 6 };
const account = (ended: boolean) => ({
  account: { usage, finishReasons: [], ended, firstTokenMs: 1 },
  complete: true,
});

test('what an origin has generated ahead of a limited reservation is not billed, and what was relayed is', () => {
  const { requests, reserve } = newRequests();
  const billed = (tokens: number, tokensPerDay: number | null) => {
    const keyId = `k${tokens}${tokensPerDay}`;
    reserve(keyId, tokens, tokensPerDay);
    const relayed = { ...usage, completionTokens: 1 };
    requests.renew(keyId, { ttlMs: TTL, usage: relayed, upstream: 'origin' }, START);
    return recordAfter(requests.find(keyId)!, account(true), START).record.usage;
  };
  expect(billed(8, 100)).toEqual({ ...usage, completionTokens: 4 });
  expect(billed(2, 100)).toEqual({ ...usage, completionTokens: 1 });
  expect(billed(8, null)).toEqual(usage);
});

test('a Worker that vanished before an upstream without accounts is billed for all that it may have relayed', () => {
  const { requests, reserve } = newRequests();
  const billed = (upstream: string | null, tokensPerDay: number | null) => {
    const keyId = `k${upstream}${tokensPerDay}`;
    reserve(keyId, 20, tokensPerDay);
    requests.renew(keyId, { ttlMs: TTL, usage, upstream }, START);
    const open = requests.find(keyId)!;
    return recordAfter(open, { account: null, complete: true }, START).record.usage.completionTokens;
  };
  expect(billed('vllm', 100)).toBe(20 - usage.promptTokens);
  expect(billed('vllm', null)).toBe(usage.completionTokens);
  // It has reached no upstream.
  expect(billed(null, 100)).toBe(usage.completionTokens);
});

test('the bill of a Worker that was killed is final within two lifetimes of its reservation', () => {
  const { storage, requests, reserve } = newRequests();
  reserve('r');
  // The Worker is killed right after a renewal.
  const killed = START + TTL / 3;
  requests.renew('r', { ttlMs: TTL, usage, upstream: 'origin' }, killed);
  const next = () => storage.open.nextDue();
  requests.releaseDue(next());
  let now = next();
  let [open] = requests.abandoned(now);
  // The origin notices the lost connection only after the first inquiry.
  const first = recordAfter(open!, account(false), now);
  requests.postpone(open!, first.record, first.askAt!);
  now = next();
  [open] = requests.abandoned(now);
  const second = recordAfter(open!, account(true), now);
  expect(second.askAt).toBeNull();
  expect(now - killed).toBeLessThanOrEqual(2 * TTL);
});

test('an upstream that never says that a request has ended keeps it open only while it generates', () => {
  const { storage, requests, reserve } = newRequests();
  reserve('r');
  requests.releaseDue(storage.open.nextDue());
  const stopsAt = START + 40 * TTL;
  for (let tokens = 100; ; tokens += 1) {
    const now = storage.open.nextDue();
    const [open] = requests.abandoned(now);
    const { usage: known, ...more } = account(false).account;
    const grown = { ...known, completionTokens: now < stopsAt ? tokens : 6 };
    const { record, askAt } = recordAfter(open!, { account: { ...more, usage: grown }, complete: true }, now);
    if (askAt === null) {
      expect(now - stopsAt).toBeGreaterThanOrEqual(0);
      expect(now - stopsAt).toBeLessThan(TTL);
      expect(record.usage.completionTokens).toBe(tokens - 1);
      return;
    }
    requests.postpone(open!, record, askAt);
  }
});

test('a reservation expires unless it is renewed, and gives its slot back once', () => {
  const { storage, requests, reserve } = newRequests();
  reserve('r');
  const running = () => useOf(storage.counters, 'r', START).concurrency;
  requests.renew('r', { ttlMs: TTL, usage, upstream: null }, START + 20_000);
  requests.releaseDue(START + TTL);
  expect([storage.open.nextDue(), running()]).toEqual([START + 20_000 + TTL, 1]);
  requests.releaseDue(START + 20_000 + TTL);
  expect(running()).toBe(0);
  requests.close(requests.find('r')!, { ...requests.find('r')!.record, usage });
  expect([storage.open.nextDue(), running()]).toEqual([Number.POSITIVE_INFINITY, 0]);
});
