import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type { Claimant, GrantedSlice, LimiterCall } from '../../../../worker/env/limiter-protocol.ts';
import { NOTHING } from '../../../../worker/limits/quota/budget.ts';
import { Exchange } from '../../../../worker/limits/quota/exchange.ts';
import { LocalBudgets } from '../../../../worker/limits/quota/local-budgets.ts';

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
  const exchange = new Exchange(budgets);
  const slice: GrantedSlice = {
    keyId: 'key',
    number: 1,
    lifeMs: 10_000,
    status: { requests: null, tokens: null },
    amounts: { requests: null, tokens: null, money: null, slots: null },
  };
  const call = exchange.compose(null, at);
  exchange.take(call, { cursor: 0, reservation: null, slices: [slice], blocked: [] }, at, 'fresh');
  return { budgets, exchange };
}

test('forgets no decision while home is away: it admits no more', () => {
  const { budgets, exchange } = budgetsWithSlice(0);
  let admitted = 0;
  for (let count = 0; count < 50_000; count += 1) {
    const id = budgets.admit(CLAIMANT, 'r', 1);
    if (id === null) continue;
    admitted += 1;
    budgets.settle({ requestId: id, settlement: { ...SETTLEMENT, endUser: null } }, NOTHING);
  }
  expect(budgets.extend(CLAIMANT, 'late', false, 1)).toEqual(NOTHING);
  const { first, decisions }: LimiterCall = exchange.compose(null, 1);
  expect([first, decisions.length]).toEqual([1, 2 * admitted]);
  expect(admitted).toBeLessThan(50_000);
});

test('returns a slice from the future after its clock has stepped back', () => {
  const { budgets, exchange } = budgetsWithSlice(1_000_000);
  expect(budgets.admit(CLAIMANT, 'r', 999_999)).toBeNull();
  expect(exchange.isDue(999_999)).toBe(true);
  expect(exchange.compose(null, 999_999).decisions).toMatchObject([{ kind: 'returned', slice: 1 }]);
});
