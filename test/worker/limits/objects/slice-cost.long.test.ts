import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import { randomFrom } from '../../../support/random.ts';
import { World } from './isolate-world.ts';

/** A tenant whose isolates are 100 ms away from the object, each with its share of the load. */
interface Load {
  readonly name: string;
  readonly limits: Partial<Limits>;
  /** Requests per second of each isolate. */
  readonly rates: readonly number[];
  readonly seconds: number;
  /** Of one tenant; by default one. */
  readonly keys?: number;
  readonly unchecked?: boolean;
}

/** Runs a load of equal requests, and returns what it could use and what it cost. */
async function measure({ limits, rates, seconds, keys = 1, unchecked = false }: Load) {
  const all = { ...UNLIMITED, ...limits };
  const random = randomFrom(7);
  const world = new World({
    random,
    start: Date.UTC(2026, 0, 15, 12),
    isolates: rates.length,
    limits: { tenant: all },
    faults: 0,
    delay: 50,
    unchecked,
  });
  const callsAfter: number[] = [];
  for (let ms = 0; ms < 1000 * seconds; ms += 10) {
    for (const [isolate, rate] of rates.entries()) {
      const key = `key${Math.floor(random() * keys)}`;
      if (random() < rate / 100) void world.ask({ isolate, key, tokens: 40, used: 40, runMs: 300 });
    }
    await world.clock.run(10);
    if (ms % 1000 === 990) callsAfter.push(world.counts.calls);
  }
  const callsPerSecond = callsAfter.map((calls, second) => calls - (callsAfter[second - 1] ?? 0));
  const { asked, calls, waited } = world.counts;
  const served = world.truth.size;
  const perRequest = { calls: calls / asked, rows: world.rows / asked };
  return { asked, served, perRequest, waitedShare: waited / asked, callsPerSecond };
}

describe('what slices cost', () => {
  test('a steady load far from the object makes few calls, and few requests wait for one', async () => {
    const load = {
      name: 'steady',
      limits: { requestsPerMinute: 1e6, tokensPerMinute: 1e8 },
      seconds: 10,
    };
    const far = { ...load, rates: [80, 80, 80], unchecked: true };
    const { asked, served, perRequest, waitedShare } = await measure(far);
    expect(served).toBe(asked);
    // A busy isolate calls the object four times per second.
    expect(perRequest.calls).toBeLessThan(0.06);
    expect(waitedShare).toBeLessThan(1 / 50);
  });

  /** The loads of docs/scaling.md, which has these numbers. */
  test.each([
    { name: '1 request/s, 1 isolate', rates: [1], seconds: 600, calls: 2.2, rows: 2 },
    { name: '10 requests/s, 3 isolates', rates: Array(3).fill(3.33), seconds: 120, calls: 1.3, rows: 1.3 },
    { name: '100 requests/s, 10 isolates', rates: Array(10).fill(10), seconds: 20, calls: 0.5, rows: 0.5 },
    {
      name: '100 requests/s, 10 isolates, 10 keys',
      rates: Array(10).fill(10),
      keys: 10,
      seconds: 20,
      calls: 0.5,
      rows: 0.6,
    },
    { name: '1,000 requests/s, 20 isolates', rates: Array(20).fill(50), seconds: 4, calls: 0.1, rows: 0.15 },
  ])('the object writes few rows: $name', async ({ calls, rows, ...load }) => {
    const limits = { requestsPerMinute: 1e6, tokensPerMinute: 1e8 };
    const { perRequest } = await measure({ ...load, limits, unchecked: true });
    expect(perRequest.calls).toBeLessThan(calls);
    expect(perRequest.rows).toBeLessThan(rows);
  });

  test('1,000 isolates of one tenant with 5,000 requests/s make fewer calls than one object can take', async () => {
    const { asked, served, perRequest, callsPerSecond } = await measure({
      name: 'many isolates',
      limits: { requestsPerMinute: 375_000, tokensPerMinute: 15_000_000 },
      rates: Array(1_000).fill(5),
      seconds: 8,
      unchecked: true,
    });
    expect(served).toBe(asked);
    // At first, each isolate asks the object for two requests, and its slices do not fit its load yet.
    expect(Math.max(...callsPerSecond.slice(5))).toBeLessThan(1_000);
    expect(perRequest.rows).toBeLessThan(0.5);
  });

  test.each([
    { name: 'small', limits: { requestsPerMinute: 60 }, rates: [4], seconds: 30 },
    { name: 'large', limits: { requestsPerMinute: 2_000 }, rates: [60, 60, 60], seconds: 30 },
    { name: 'very uneven', limits: { requestsPerMinute: 1_000 }, rates: [80, 1, 0.2], seconds: 30 },
    { name: 'limited by tokens', limits: { tokensPerMinute: 40_000 }, rates: [60, 60, 60], seconds: 30 },
  ])('a $name tenant can use its whole limit within a minute', async (load: Load) => {
    const { served } = await measure(load);
    const { requestsPerMinute: requests, tokensPerMinute: tokens } = load.limits;
    const limit = requests ?? Math.floor((tokens ?? 0) / 40);
    expect(served).toBeLessThanOrEqual(limit);
    expect(served / limit).toBeGreaterThanOrEqual(0.99);
  });
});
