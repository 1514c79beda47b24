import { expect, test } from 'vitest';
import { UNLIMITED } from '../../../../shared/tenant.ts';
import type { Claimant, GrantedSlice, LimiterCall } from '../../../../worker/env/limiter-protocol.ts';
import { NOTHING } from '../../../../worker/limits/quota/budget.ts';
import { Purse } from '../../../../worker/limits/quota/purse.ts';

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

/** Returns a purse with a slice of a budget without limits, requested at `at`. */
function purseWithSlice(at: number): Purse {
  const purse = new Purse('i');
  const slice: GrantedSlice = {
    keyId: 'key',
    number: 1,
    lifeMs: 10_000,
    status: { requests: null, tokens: null },
    amounts: { requests: null, tokens: null, money: null, slots: null },
  };
  const call = purse.compose(null, at);
  purse.take(call, { cursor: 0, reservation: null, slices: [slice], blocked: [] }, at, 'fresh');
  return purse;
}

test('forgets no decision while home is away: it admits no more', () => {
  const purse = purseWithSlice(0);
  let admitted = 0;
  for (let count = 0; count < 50_000; count += 1) {
    const id = purse.admit(CLAIMANT, 'r', 1);
    if (id === null) continue;
    admitted += 1;
    purse.settle({ requestId: id, settlement: { ...SETTLEMENT, endUser: null } }, NOTHING);
  }
  expect(purse.extend(CLAIMANT, 'late', false, 1)).toEqual(NOTHING);
  const { first, decisions }: LimiterCall = purse.compose(null, 1);
  expect([first, decisions.length]).toEqual([1, 2 * admitted]);
  expect(admitted).toBeLessThan(50_000);
});

test('returns a slice from the future after its clock has stepped back', () => {
  const purse = purseWithSlice(1_000_000);
  expect(purse.admit(CLAIMANT, 'r', 999_999)).toBeNull();
  expect(purse.isDue(999_999)).toBe(true);
  expect(purse.compose(null, 999_999).decisions).toMatchObject([{ kind: 'returned', slice: 1 }]);
});
