import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  affordable,
  costOf,
  namedPrice,
  type Price,
  priceName,
  within,
} from '../../../worker/limits/usage/price.ts';
import { PriceList } from '../../../worker/prices/price-list.ts';

const rate = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5e9 }), fc.integer({ min: 1, max: 1e15 }));
const anyPrice: fc.Arbitrary<Price> = fc
  .record({ version: fc.nat(99_999), prompt: rate, completion: rate, part: fc.nat(1_000) })
  .map(({ part, ...price }) => ({ ...price, cached: Math.floor((price.prompt * part) / 1_000) }));
/** Without a prefix cache. */
const maxCost = (price: Price, promptTokens: number, completionTokens: number): number =>
  costOf(price, { promptTokens, cachedTokens: 0, completionTokens });
const tokens = fc.integer({ min: 0, max: 2_000_000 });
const anyUsage = fc
  .record({ promptTokens: tokens, cachedTokens: tokens, completionTokens: tokens })
  .map((usage) => ({ ...usage, cachedTokens: Math.min(usage.cachedTokens, usage.promptTokens) }));

describe('the cost of a request', () => {
  test('is rounded up once, to the micro-unit', () => {
    const price = { version: 1, prompt: 500_000_000, cached: 100_000_000, completion: 1_500_000_000 };
    const cost = (promptTokens: number, cachedTokens: number, completionTokens: number) =>
      costOf(price, { promptTokens, cachedTokens, completionTokens });
    expect(cost(0, 0, 0)).toBe(0);
    expect(cost(1, 0, 0)).toBe(1);
    expect(cost(2, 0, 0)).toBe(1);
    expect(cost(1, 1, 0)).toBe(1);
    expect(cost(10, 5, 3)).toBe(8);
    expect(costOf(null, { promptTokens: 9, cachedTokens: 0, completionTokens: 9 })).toBe(0);
  });

  test('is exact where floats are not', () => {
    const price = { version: 1, prompt: 0, cached: 0, completion: 999_999_999_999_999 };
    const usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 8_999_999 };
    expect(costOf(price, usage)).toBe(8_999_999_000_000);
    expect(costOf(price, { ...usage, completionTokens: 9_007_199 })).toBe(9_007_199_000_000);
  });

  test('of the affordable tokens is within the money, and of one more is not', () => {
    fc.assert(
      fc.property(anyPrice, anyUsage, fc.integer({ min: 0, max: 1e13 }), (price, usage, money) => {
        const most = affordable(price, money, usage);
        const cost = (all: number) => costOf(price, { ...usage, completionTokens: all - usage.promptTokens });
        // No request has so many tokens.
        fc.pre(most < 1e15 || price.completion === 0);
        if (most === Number.POSITIVE_INFINITY) expect(price.completion).toBe(0);
        else {
          if (cost(usage.promptTokens) <= money) expect(cost(most)).toBeLessThanOrEqual(money);
          expect(cost(most + 1)).toBeGreaterThan(money);
        }
      }),
    );
  });

  test('of parts that were reserved one by one covers that of the whole', () => {
    fc.assert(
      fc.property(anyPrice, fc.array(fc.nat(3_000), { maxLength: 20 }), (price, parts) => {
        const reserved = parts.reduce((sum, part) => sum + maxCost(price, 0, part), 0);
        const all = parts.reduce((sum, part) => sum + part, 0);
        expect(reserved).toBeGreaterThanOrEqual(maxCost(price, 0, all));
      }),
    );
  });

  test('of a bill that is cut to the money is within it, and the largest such bill', () => {
    fc.assert(
      fc.property(anyPrice, anyUsage, fc.integer({ min: 0, max: 1e12 }), (price, usage, money) => {
        const cut = within(price, money, usage);
        expect(costOf(price, cut)).toBeLessThanOrEqual(money);
        if (cut.promptTokens < usage.promptTokens) return;
        const more = { ...cut, completionTokens: cut.completionTokens + 1 };
        if (cut.completionTokens < usage.completionTokens) expect(costOf(price, more)).toBeGreaterThan(money);
      }),
    );
  });
});

describe('a price in the id of a request', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(anyPrice, (price) => {
        expect(namedPrice(priceName(price))).toEqual(price);
      }),
    );
    expect(namedPrice(priceName(null))).toBeNull();
  });

  test('is short enough for an account of an origin', () => {
    const largest = { version: 1e9, prompt: 1e15, cached: 1e15, completion: 1e15 };
    expect(priceName(largest).length).toBeLessThanOrEqual(41);
  });
});

describe('the list of prices', () => {
  const at = (validFrom: number, version: number, completion: number) => ({
    version,
    model: 'm',
    validFrom,
    prompt: 0,
    cachedPrompt: 0,
    completion,
    flexFactor: 500,
    batchFactor: 250,
  });

  test('changes at the time from which a price is valid, and has the factor of the tier', async () => {
    let now = 0;
    const list = new PriceList(() => now);
    const read = async () => [at(100, 2, 20), at(0, 1, 10), at(100, 3, 30)];
    expect(await list.of('m', 'default', read)).toMatchObject({ version: 1, completion: 10_000 });
    now = 100;
    expect(await list.of('m', 'flex', read)).toMatchObject({ version: 3, completion: 15_000 });
    expect(await list.of('m', 'batch', read)).toMatchObject({ version: 3, completion: 7_500 });
    expect(await list.of('other', 'default', read)).toBeNull();
  });

  test('is read again if it was changed while it was read', async () => {
    const list = new PriceList(() => 0);
    const before = Promise.withResolvers<ReturnType<typeof at>[]>();
    const waiting = list.of('m', 'default', () => before.promise);
    list.forget();
    before.resolve([at(0, 1, 10)]);
    expect(await waiting).toMatchObject({ version: 1 });
    const after = async () => [at(0, 1, 10), at(0, 2, 20)];
    expect(await list.of('m', 'default', after)).toMatchObject({ version: 2 });
  });

  test('is kept if the database fails, and requests fail if it was never read', async () => {
    let now = 0;
    const list = new PriceList(() => now);
    const fail = async () => Promise.reject(new Error('no database'));
    await expect(list.of('m', 'default', fail)).rejects.toMatchObject({ status: 503 });
    await list.of('m', 'default', async () => [at(0, 1, 10)]);
    now = 120_000;
    expect(await list.of('m', 'default', fail)).toMatchObject({ version: 1 });
  });
});
