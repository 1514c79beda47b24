import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import type { Price } from '../../../../worker/limits/usage/price.ts';
import { randomFrom, runs } from '../../../support/random.ts';
import { World } from './isolate-world.ts';

/** Ninety seconds before the end of a day and of a month. */
const START = Date.UTC(2026, 0, 31, 23, 58, 30);

const DAY_MS = 86_400_000;

type Draw = (from: number, to: number) => number;

const drawFrom = (random: () => number): Draw => {
  return (from, to) => from + Math.floor(random() * (to - from + 1));
};

const maybe = (draw: Draw, from: number, to: number): number | null =>
  draw(0, 2) === 0 ? null : draw(from, to);

/** Limits of money only. */
const NO_TOKENS = { tokensPerMinute: null, tokensPerDay: null, tokensPerMonth: null };

/** From a fraction of a micro-unit to some of them per token. */
const anyPrice = (draw: Draw): { readonly price: Price } => {
  const completion = draw(0, 4_000_000_000);
  return { price: { version: 1, prompt: 0, cached: 0, completion } };
};

const anyLimits = (draw: Draw): Limits => ({
  ...UNLIMITED,
  requestsPerMinute: maybe(draw, 8, 600),
  tokensPerMinute: maybe(draw, 100, 12_000),
  concurrentRequests: maybe(draw, 6, 200),
  tokensPerDay: maybe(draw, 300, 20_000),
  tokensPerMonth: maybe(draw, 300, 30_000),
  microsPerDay: maybe(draw, 300, 60_000),
  microsPerMonth: maybe(draw, 300, 90_000),
});

/** Sends bursts of requests to few or many isolates, and kills some isolates and the object in between. */
async function play(world: World, isolates: number, draw: Draw, bursts = 60): Promise<void> {
  for (let burst = 0; burst < bursts; burst += 1) {
    const some = draw(1, isolates);
    for (let count = draw(1, 25); count > 0; count -= 1) {
      const tokens = draw(1, 40);
      const runMs = draw(0, 5) === 0 ? draw(1_000, 40_000) : draw(1, 900);
      const user = [null, 'u', 'v'][draw(0, 2)]!;
      const wanted = { isolate: draw(0, some - 1), key: draw(0, 1) === 0 ? 'a' : 'b', user, tokens, runMs };
      const most = draw(0, 3) === 0 ? draw(tokens, 3_000) : tokens;
      const used = draw(0, most);
      const leavesMs = draw(0, 4) === 0 ? draw(1, 2 * runMs) : undefined;
      void world.ask({ ...wanted, used, leavesMs, ...(most > tokens ? { most } : {}) });
    }
    if (draw(0, 14) === 0) world.vanish(draw(0, isolates - 1));
    if (draw(0, 14) === 0) world.restartObject();
    await world.clock.run(draw(0, 3) === 0 ? draw(0, 9_000) : draw(0, 700));
  }
}

describe('limits across isolates', () => {
  test.each(Array.from({ length: runs(30) }, (_, index) => index))(
    'exceeds no limit, frees every slot and bills every request once under faults, case %i',
    async (index) => {
      const random = randomFrom(1_000 + index);
      const draw = drawFrom(random);
      const isolates = [1, 3, 12, 60, 500][index % 5]!;
      const drawLimits = () => ({ ...anyLimits(draw), ...(index % 3 === 1 && NO_TOKENS) });
      const tenant = { ...drawLimits(), creditMicros: maybe(draw, 300, 90_000) };
      const limits = { tenant, a: drawLimits(), b: UNLIMITED };
      const hasUserLimits = index % 4 > 1;
      const faults = index % 2 === 0 ? 0.03 : 0;
      const world = new World({
        random,
        start: START,
        isolates,
        limits,
        faults,
        ...(hasUserLimits && { userLimits: drawLimits() }),
        ...(index % 3 > 0 && anyPrice(draw)),
        waitForTokens: index % 2 === 1,
      });
      await play(world, isolates, draw);
      await world.settle();
      const subjects = ['tenant', 'a', 'b', ...(hasUserLimits ? ['user:u', 'user:v'] : [])];
      expectExact(world, subjects);
      // Counters leave meanwhile, but none that a limit still needs.
      await world.pass(draw(0, 40) * DAY_MS);
      await play(world, isolates, draw, 15);
      await world.settle();
      expectExact(world, subjects, true);
      await world.pass(33 * DAY_MS);
      expect(world.stored).toEqual(['tenant']);
      expectExact(world, ['tenant']);
    },
  );
});

/**
 * The ledger and the counters agree with what requests have really used.
 * @param keysLeft counters of keys have left meanwhile, with what was spent before
 */
function expectExact(world: World, subjects: readonly string[], keysLeft = false): void {
  const billed = world.billed();
  expect(world.ledger).toHaveLength(billed.size);
  for (const [id, { used, price }] of world.truth) {
    const { tokens, money } = billed.get(id) ?? { tokens: 0, money: 0 };
    // A request whose answer was lost is billed for nothing, or not at all if its isolate vanished before.
    const exact = Math.ceil(((used ?? 0) * (price?.completion ?? 0)) / 1e9);
    expect([id, tokens, money]).toEqual([id, used, exact]);
  }
  for (const subject of subjects) {
    const [tokens, money] = [world.spent(subject, 'tokens'), world.spent(subject, 'money')];
    const ever = keysLeft && subject !== 'tenant' ? expect.any(Number) : world.spent(subject, 'money', '');
    expect([subject, world.counted(subject)]).toEqual([subject, { tokens, money, ever, running: 0 }]);
  }
}

describe('reservations that grow', () => {
  test.each([
    [1, 1_000, null],
    [3, 1_000, null],
    [30, 3_000, null],
    [1, 1_000, 700_000_000],
    [3, 1_000, 4_000_000_000],
    [30, 3_000, 2_500_000_000],
  ])(
    'streams on %d isolates use a budget for half of them, but no more: %d tokens each, price %j',
    async (isolates, tokens, completion) => {
      const price = { version: 1, prompt: 0, cached: 0, completion: completion ?? 0 };
      const budget = Math.ceil(64 * tokens * (completion === null ? 1 : completion / 1e9));
      const random = randomFrom(9);
      const limit = completion === null ? { tokensPerDay: budget } : { creditMicros: budget };
      const limits = { tenant: { ...UNLIMITED, ...limit } };
      const start = Date.UTC(2026, 0, 15, 12);
      const world = new World({ random, start, isolates, limits, faults: 0, delay: 50, price });
      for (let stream = 0; stream < 128; stream += 1) {
        const wanted = { isolate: stream % isolates, key: 'a', tokens: 2 + 256, most: 2 + tokens };
        void world.ask({ ...wanted, used: 2 + tokens, runMs: 10_000 });
        await world.clock.run(5);
      }
      await world.settle();
      const used = world.spent('tenant', completion === null ? 'tokens' : 'money');
      expect(used).toBeLessThanOrEqual(budget);
      expect(used / budget).toBeGreaterThanOrEqual(0.99);
      expect(world.counts.cut).toBeGreaterThan(0);
    },
  );
});

test('bills the streams of a lost isolate to the micro-unit, also what it has not reported', async () => {
  const price = { version: 1, prompt: 0, cached: 0, completion: 1_234_567_890 };
  for (let vanishMs = 4_000; vanishMs < 4_400; vanishMs += 200) {
    const limits = { tenant: { ...UNLIMITED, creditMicros: 10_000_000 } };
    const start = Date.UTC(2026, 0, 15, 12);
    const world = new World({
      random: randomFrom(3),
      start,
      isolates: 1,
      limits,
      faults: 0,
      delay: 20,
      price,
    });
    for (let stream = 0; stream < 12; stream += 1) {
      const wanted = { isolate: 0, key: 'a', tokens: 258, most: 30_000, used: 30_000, runMs: 10_000 };
      void world.ask(wanted);
      await world.clock.run(130);
    }
    await world.clock.run(vanishMs);
    world.vanish(0);
    await world.settle();
    const billed = world.billed();
    for (const [id, { used }] of world.truth) {
      const money = Math.ceil((used ?? 0) * 1.23456789);
      expect([vanishMs, id, billed.get(id)]).toEqual([vanishMs, id, { tokens: used, money }]);
    }
  }
});

test('a minute without the object frees no place of a running request, and loses no bill of upstreams without accounts', async () => {
  const limits = { tenant: { ...UNLIMITED, concurrentRequests: 400 } };
  const start = Date.UTC(2026, 0, 15, 12);
  const world = new World({
    random: randomFrom(5),
    start,
    isolates: 3,
    limits,
    faults: 0,
    delay: 20,
    withoutAccounts: true,
  });
  const ask = (count: number, runMs: number) => {
    for (let one = 0; one < count; one += 1)
      void world.ask({ isolate: one % 3, key: 'a', tokens: 10, used: 10, runMs });
  };
  for (let wave = 0; wave < 10; wave += 1) {
    ask(30, 200_000);
    await world.clock.run(200);
  }
  const away = world.stopObject(60_000);
  // Isolates go on with what they hold.
  const admitted = world.truth.size;
  ask(30, 300);
  await away;
  expect(world.truth.size).toBeGreaterThan(admitted);
  for (let second = 0; second < 3; second += 1) {
    await world.clock.run(1_000);
    ask(150, 900);
  }
  await world.settle();
  const billed = world.billed();
  for (const [id, { used }] of world.truth) expect([id, billed.get(id)?.tokens]).toEqual([id, used]);
});
