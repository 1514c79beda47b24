import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import { NOTHING } from '../../../../worker/limits/quota/budget.ts';
import { LocalBudgets } from '../../../../worker/limits/quota/local-budgets.ts';
import type { Claimant, GrantedSlice, LimiterCall } from '../../../../worker/limits/quota/protocol.ts';

const CLAIMANT: Claimant = {
  tenantId: 'tenant',
  keyId: 'key',
  tenantLimits: UNLIMITED,
  keyLimits: UNLIMITED,
  model: 'tiny',
  tokens: 1,
  money: 0,
  price: null,
  ttlMs: 30_000,
};
const SETTLEMENT = {
  status: 'completed' as const,
  usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 1 },
  errorCode: null,
  finishReasons: [],
  upstream: null,
  latencyMs: 0,
  firstTokenMs: null,
};

/** Returns budgets with a slice of a budget without limits, requested at `at`. */
function budgetsWithSlice(at: number) {
  const budgets = new LocalBudgets('i');
  const slice: GrantedSlice = {
    keyId: 'key',
    number: 1,
    lifeMs: 10_000,
    status: { requests: null, tokens: null },
    amounts: { requests: null, tokens: null, money: null, slots: null },
  };
  const call = budgets.compose(null, at);
  budgets.take(
    call,
    { cursor: 0, reservation: null, slices: [slice], blocked: [], nextInMs: 0 },
    at,
    'fresh',
  );
  return budgets;
}

test('forgets no decision while the object is away: it admits no more', () => {
  const budgets = budgetsWithSlice(0);
  let admitted = 0;
  for (let count = 0; count < 50_000; count += 1) {
    const id = budgets.admit(CLAIMANT, 'r', 1);
    if (id === null) continue;
    admitted += 1;
    budgets.settle({ requestId: id, settlement: { ...SETTLEMENT, endUser: null } }, NOTHING);
  }
  expect(budgets.extend(CLAIMANT, 'late', false, 1)).toEqual(NOTHING);
  const { first, decisions }: LimiterCall = budgets.compose(null, 1);
  const ended = decisions.filter((decision) => decision.kind === 'admitted' && decision.end);
  expect([first, ended.length]).toEqual([1, admitted]);
  expect(admitted).toBeLessThan(50_000);
});

test('reports a request that has ended before a call as one decision, and an end after a call as another', () => {
  const budgets = budgetsWithSlice(0);
  const end = (requestId: string) =>
    budgets.settle({ requestId, settlement: { ...SETTLEMENT, endUser: null } }, NOTHING);
  const [early, late] = [budgets.admit(CLAIMANT, 'early', 1)!, budgets.admit(CLAIMANT, 'late', 1)!];
  end(early);
  const lost = budgets.compose(null, 1);
  expect(lost.decisions).toMatchObject([
    { kind: 'admitted', requestId: early, end: { settlement: SETTLEMENT } },
    { kind: 'admitted', requestId: late },
  ]);
  expect(lost.decisions[1]).not.toHaveProperty('end');
  end(late);
  // The object may have received what it did not answer.
  budgets.lose(lost);
  const { first, decisions } = budgets.compose(null, 2);
  expect(first).toBe(1);
  expect(decisions).toEqual([
    ...lost.decisions,
    expect.objectContaining({ kind: 'settled', requestId: late }),
  ]);
});

test('reports when the object wants it, and at once if 100 requests have ended', () => {
  const budgets = budgetsWithSlice(0);
  const answer = { cursor: 0, reservation: null, slices: [], blocked: [], nextInMs: 1_100 };
  budgets.take(budgets.compose(null, 100), answer, 100, 'fresh');
  const end = (count: number) => {
    for (let one = 0; one < count; one += 1) {
      const requestId = budgets.admit(CLAIMANT, 'r', 200)!;
      budgets.settle({ requestId, settlement: { ...SETTLEMENT, endUser: null } }, NOTHING);
    }
  };
  end(99);
  expect([budgets.isDue(1_199), budgets.isDue(1_200), budgets.isUrgent(null, 200)]).toEqual([
    false,
    true,
    false,
  ]);
  end(1);
  expect(budgets.isUrgent(null, 200)).toBe(true);
  // The clock has stepped back.
  expect(budgets.isDue(99)).toBe(true);
});

test('knows from the last answer that a key with a slice is not blocked: for 1 s, or until the object wants the next call', () => {
  const budgets = budgetsWithSlice(0);
  const known = (...times: number[]) => times.map((at) => budgets.isKnownOpen('key', at));
  expect(known(0, 999, 1_000)).toEqual([true, true, false]);
  expect(budgets.isKnownOpen('other', 0)).toBe(false);
  const answer = { cursor: 0, reservation: null, slices: [], blocked: [], nextInMs: 1_100 };
  budgets.take(budgets.compose(null, 2_000), answer, 2_000, 'fresh');
  expect(known(1_999, 3_499, 3_500)).toEqual([false, true, false]);
  budgets.take(budgets.compose(null, 3_000), { ...answer, blocked: ['key'] }, 3_000, 'fresh');
  expect(known(3_001)).toEqual([false]);
});

test('asks for a slice of what its key uses in two lifetimes, and for 128 requests and 8,192 tokens at least', () => {
  const { slices } = new LocalBudgets('i');
  const request = { tokens: 10, money: 1 };
  const few = { requests: 128, tokens: 8_200, money: 820, slots: 128 };
  expect(slices.need('key', request, 0)).toEqual(few);
  const amounts = { requests: 1_000, tokens: 10_000, money: null, slots: null };
  const status = { requests: null, tokens: null };
  slices.put({ keyId: 'key', number: 1, lifeMs: 10_000, status, amounts }, 0);
  for (let count = 0; count < 100; count += 1) slices.take('key', { requests: 1, tokens: 10 }, 0);
  expect(slices.need('key', request, 500)).toEqual({ ...few, requests: 2_000, tokens: 20_000 });
  expect(slices.need('key', request, 5_000)).toEqual({ ...few, requests: 400 });
});

test('returns a slice from the future after its clock has stepped back', () => {
  const budgets = budgetsWithSlice(1_000_000);
  expect(budgets.admit(CLAIMANT, 'r', 999_999)).toBeNull();
  expect(budgets.isDue(999_999)).toBe(true);
  expect(budgets.compose(null, 999_999).decisions).toMatchObject([{ kind: 'returned', slice: 1 }]);
});
