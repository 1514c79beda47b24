import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import { SLICE_GRACE_MS, SLICE_MS } from '../../../../worker/limits/quota/slice.ts';
import { periodUse, subjectState } from '../../../../worker/limits/quota/state.ts';
import { used } from '../../../../worker/limits/quota/window.ts';
import { runs } from '../../../support/random.ts';
import { RESERVATION_TTL_MS, type Truth, World } from './region-world.ts';

const START = Date.UTC(2026, 0, 31, 23, 58, 30);
const REGIONS = 3;

const maybe = (min: number, max: number) => fc.option(fc.integer({ min, max }), { nil: null, freq: 2 });

const anyLimits: fc.Arbitrary<Limits> = fc.record({
  requestsPerMinute: maybe(8, 150),
  tokensPerMinute: maybe(80, 3000),
  concurrentRequests: maybe(6, 80),
  tokensPerDay: maybe(300, 6000),
  tokensPerMonth: maybe(300, 9000),
  maxTokens: fc.constant(null),
  maxSequences: fc.constant(null),
});

const region = fc.nat(REGIONS - 1);
const anyStep = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      region,
      key: fc.constantFrom('a', 'b'),
      tokens: fc.integer({ min: 1, max: 25 }),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('settle' as const),
      pick: fc.nat(),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('talk' as const, 'send' as const, 'deliver' as const, 'receive' as const),
      region,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('lose' as const, 'crash' as const, 'echo' as const, 'unheard' as const),
      region,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('again' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('settleAgain' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stray' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crashHome' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.oneof(fc.nat(1500), fc.nat(1500), fc.nat(15_000), fc.nat(70_000)),
    }),
  },
);
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

const day = (at: number) => new Date(at).toISOString().slice(0, 10);
const month = (at: number) => new Date(at).toISOString().slice(0, 7);
const tokensOf = ({ used: spent, reserved }: Truth) => spent ?? reserved;
const sum = (some: readonly Truth[]) => some.reduce((total, truth) => total + tokensOf(truth), 0);
const within = (amount: number, limit: number | null) =>
  expect(amount).toBeLessThanOrEqual(limit ?? Number.POSITIVE_INFINITY);

/** Checks the limits by their definition, over all admitted requests of all regions. */
function recount(world: World, subject: string, limits: Limits): void {
  const { now } = world;
  const all = [...world.truth.values()].filter(({ key }) => subject === 'tenant' || key === subject);
  const minute = all.filter(({ at }) => Math.floor(at / 1000) > Math.floor(now / 1000) - 60);
  within(minute.length, limits.requestsPerMinute);
  within(sum(minute), limits.tokensPerMinute);
  within(sum(all.filter(({ at }) => day(at) === day(now))), limits.tokensPerDay);
  within(sum(all.filter(({ at }) => month(at) === month(now))), limits.tokensPerMonth);
  // A request loses its slot if home hears nothing of it for the lifetime of a reservation.
  const alive = all.filter(
    ({ used: spent, at, toldAt }) => spent === null && (toldAt ?? now) < at + RESERVATION_TTL_MS,
  );
  within(alive.length, limits.concurrentRequests);
}

/** Returns home's counters of the tenant: requests and tokens per minute, and slots. */
function countedAtHome({ quota, now }: World): number[] {
  const { requests, tokens, running } = subjectState(quota, 'tenant');
  return [used(requests, now), used(tokens, now), running];
}

/** Delivers all messages and settles all requests. Home's counters must then equal the truth. */
function quiesce(world: World): void {
  world.forgetStrays();
  for (let round = 0; round < 3; round += 1) {
    for (let index = 0; index < REGIONS; index += 1) {
      world.lose(index);
      world.talk(index);
    }
    for (const { id, used: spent } of world.truth.values()) if (spent === null) world.settle(id, 1);
    world.pass(SLICE_MS);
  }
}

function play(world: World, steps: readonly Step[]): void {
  const asked: { region: number; id: string; key: string; tokens: number }[] = [];
  for (const [at, step] of steps.entries()) {
    if (step.do === 'ask') {
      for (let count = 0; count < step.count; count += 1) {
        const one = { region: step.region, id: `r${at}.${count}`, key: step.key, tokens: step.tokens };
        asked.push(one);
        world.ask(one.region, one.id, one.key, one.tokens);
      }
    } else if (step.do === 'settle') {
      const running = [...world.truth.values()].filter(
        ({ used: spent, region: told }) => spent === null && told !== null,
      );
      const picked = running[step.pick % Math.max(1, running.length)];
      if (picked) world.settle(picked.id, Math.floor(picked.reserved * step.share));
    } else if (step.do === 'again') {
      // A caller repeats a request whose answer was lost.
      const one = asked[step.pick % Math.max(1, asked.length)];
      if (one && world.truth.get(one.id)?.used === null) world.ask(one.region, one.id, one.key, one.tokens);
    } else if (step.do === 'settleAgain') {
      const ended = [...world.truth.values()].filter(({ used: spent }) => spent !== null);
      const picked = ended[step.pick % Math.max(1, ended.length)];
      if (picked) world.settleAgain(picked.id);
    } else if (step.do === 'pass') world.pass(step.ms);
    else if (step.do === 'stray') world.deliverStray();
    else if (step.do === 'crashHome') world.crashHome();
    else if (step.do === 'echo') {
      // A message that was given up arrives after its replacement.
      world.send(step.region);
      world.lose(step.region);
      world.talk(step.region);
      world.deliverStray();
    } else if (step.do === 'unheard') {
      // Home applies the sync, but its result is lost.
      world.send(step.region);
      world.deliver(step.region);
      world.lose(step.region);
    } else world[step.do](step.region);
  }
}

describe('limits across regions', () => {
  test('exceeds no limit, counts each request once and refunds all unused amounts under lost, late or repeated messages', () => {
    fc.assert(
      fc.property(
        anyLimits,
        anyLimits,
        fc.array(anyStep, { minLength: 1, maxLength: 80, size: 'max' }),
        (tenant, a, steps) => {
          const limits = { tenant, a, b: UNLIMITED };
          const world = new World(REGIONS, limits, START);
          world.onAdmitted = () => {
            recount(world, 'tenant', tenant);
            recount(world, 'a', a);
          };
          play(world, steps);
          quiesce(world);
          for (const { id } of world.truth.values()) expect([id, world.records.get(id)]).toEqual([id, 1]);
          expect(world.records.size).toBe(world.truth.size);
          const all = [...world.truth.values()];
          for (const name of ['tenant', 'a', 'b']) {
            const own = all.filter(({ key }) => name === 'tenant' || key === name);
            const counted = subjectState(world.quota, name);
            expect(counted.running).toBe(0);
            expect(periodUse(counted, 'day', world.now)).toBe(
              sum(own.filter(({ at }) => day(at) === day(world.now))),
            );
            expect(periodUse(counted, 'month', world.now)).toBe(
              sum(own.filter(({ at }) => month(at) === month(world.now))),
            );
          }
          world.pass(SLICE_MS + SLICE_GRACE_MS + 60_000);
          expect(countedAtHome(world)).toEqual([0, 0, 0]);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('rejects requests of a single region only if the limits have no room', () => {
    const claims = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 40, maxLength: 120, size: 'max' });
    fc.assert(
      fc.property(maybe(8, 60), maybe(100, 900), claims, fc.nat(5), (requests, tokens, sizes, silence) => {
        const limits = { ...UNLIMITED, requestsPerMinute: requests, tokensPerMinute: tokens };
        const world = new World(1, { tenant: limits }, START);
        for (const [at, size] of sizes.entries()) {
          const id = `r${at}`;
          world.ask(0, id, 'a', size);
          if (at % (silence + 1) === 0 || world.regions[0]!.waiting.length > 0) world.talk(0);
          if (!world.refused.has(id)) continue;
          const taken = sum([...world.truth.values()]);
          const room = world.truth.size < (requests ?? Infinity) && taken + size <= (tokens ?? Infinity);
          expect([id, room]).toEqual([id, false]);
        }
        recount(world, 'tenant', limits);
      }),
      { numRuns: runs(200) },
    );
  });

  test.each(['requestsPerMinute', 'tokensPerMinute', 'concurrentRequests'] as const)(
    'grants a region at most an eighth of what is left of %s, and admits from it without home',
    (limit) => {
      const world = new World(2, { tenant: { ...UNLIMITED, [limit]: 81 } }, START);
      world.ask(0, 'first', 'a', 1);
      world.talk(0);
      for (let count = 0; count < 11; count += 1) world.ask(0, `r${count}`, 'a', 1);
      expect([world.truth.size, world.regions[0]!.waiting.length]).toEqual([11, 1]);
      const at = { requestsPerMinute: 0, tokensPerMinute: 1, concurrentRequests: 2 }[limit];
      expect(countedAtHome(world)[at]).toBe(11);
    },
  );

  test('reuses the slot of a settled request once, without home', () => {
    const world = new World(1, { tenant: { ...UNLIMITED, concurrentRequests: 81 } }, START);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    for (let count = 0; count < 10; count += 1) world.ask(0, `r${count}`, 'a', 1);
    world.settle('r0', 1);
    for (const id of ['next', 'one too many']) world.ask(0, id, 'a', 1);
    expect(world.regions[0]!.waiting.map(({ requestId }) => requestId)).toEqual(['one too many']);
  });

  test('counts a region’s request once, within its slice, and refunds it to the slice', () => {
    const limits = { requestsPerMinute: 81, tokensPerMinute: 801, concurrentRequests: 81 };
    const world = new World(1, { tenant: { ...UNLIMITED, ...limits } }, START + 300);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    // The first request, and a slice of ten requests and 100 tokens, all counted while the region holds the slice.
    const held = [11, 101, 11];
    expect(countedAtHome(world)).toEqual(held);
    world.ask(0, 'second', 'a', 40);
    world.talk(0);
    expect(countedAtHome(world)).toEqual(held);
    expect(world.quota.reservations.get('second')?.expiresAt).toBe(world.now + RESERVATION_TTL_MS);
    world.pass(5000);
    world.renew(0, 'second');
    world.talk(0);
    expect(world.quota.reservations.get('second')?.expiresAt).toBe(world.now + RESERVATION_TTL_MS);
    world.settle('second', 20);
    // Home applies the sync, but its result is lost.
    world.send(0);
    world.deliver(0);
    world.lose(0);
    world.talk(0);
    expect(countedAtHome(world)).toEqual(held);
    world.pass(SLICE_MS);
    world.talk(0);
    expect(countedAtHome(world)).toEqual([2, 21, 1]);
    expect(world.holders()).toEqual([]);
  });

  test('refunds and records a repeated settlement once', () => {
    const world = new World(1, { tenant: { ...UNLIMITED, tokensPerMinute: 801 } }, START);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    world.ask(0, 'second', 'a', 60);
    world.settle('second', 20);
    world.settleAgain('second');
    world.send(0);
    world.deliver(0);
    expect(countedAtHome(world)[1]).toBe(101);
    expect(world.records.get('second')).toBe(1);
  });

  test('counts the slice of a silent region for one minute only', () => {
    const limits = { requestsPerMinute: 80, tokensPerMinute: 80, concurrentRequests: 80 };
    const world = new World(2, { tenant: { ...UNLIMITED, ...limits } }, START);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    world.pass(SLICE_MS + SLICE_GRACE_MS - 1);
    expect(countedAtHome(world)).toEqual([10, 10, 10]);
    expect(world.nextEnd()).toBe(world.now + 1);
    world.pass(1);
    world.crashHome();
    expect(countedAtHome(world)).toEqual([10, 10, 1]);
    expect(world.nextEnd()).toBeNull();
    world.pass(59_000);
    expect(countedAtHome(world)).toEqual([9, 9, 1]);
    world.pass(2_000);
    expect(countedAtHome(world)).toEqual([0, 0, 1]);
  });

  test('knows the regions with slices and the end of the first slice', () => {
    const world = new World(2, { tenant: { ...UNLIMITED, requestsPerMinute: 200 } }, START);
    for (const region of [0, 1]) {
      world.ask(region, `r${region}`, 'a', 1);
      world.talk(region);
      world.pass(3000);
    }
    expect(world.holders()).toEqual(['region-0', 'region-1']);
    expect(world.nextEnd()).toBe(START + SLICE_MS + SLICE_GRACE_MS);
  });

  test('refunds the unused part of an ended slice once its region reports', () => {
    const limits = { requestsPerMinute: 80, tokensPerMinute: 80, concurrentRequests: 80 };
    const world = new World(1, { tenant: { ...UNLIMITED, ...limits } }, START + 300);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    world.ask(0, 'second', 'a', 1);
    world.send(0);
    world.lose(0);
    world.pass(SLICE_MS + SLICE_GRACE_MS);
    expect(countedAtHome(world)).toEqual([10, 10, 1]);
    world.talk(0);
    expect(countedAtHome(world)).toEqual([2, 2, 2]);
  });
});
