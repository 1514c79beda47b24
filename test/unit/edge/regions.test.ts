import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../shared/tenant.ts';
import { SLICE_GRACE_MS, SLICE_MS } from '../../../worker/quota/slice.ts';
import { periodUse, subjectState } from '../../../worker/quota/state.ts';
import { used } from '../../../worker/quota/window.ts';
import { LEASE_MS, type Truth, World } from './region-world.ts';

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

/** The definition of the limits, counted anew over everything that was ever admitted anywhere. */
function recount(world: World, subject: string, limits: Limits): void {
  const { now } = world;
  const all = [...world.truth.values()].filter(({ key }) => subject === 'tenant' || key === subject);
  const minute = all.filter(({ at }) => Math.floor(at / 1000) > Math.floor(now / 1000) - 60);
  within(minute.length, limits.requestsPerMinute);
  within(sum(minute), limits.tokensPerMinute);
  within(sum(all.filter(({ at }) => day(at) === day(now))), limits.tokensPerDay);
  within(sum(all.filter(({ at }) => month(at) === month(now))), limits.tokensPerMonth);
  // Whoever gives no sign of life for so long loses its slot, and has none when home hears of it after all.
  const alive = all.filter(
    ({ used: spent, at, toldAt }) => spent === null && (toldAt ?? now) < at + LEASE_MS,
  );
  within(alive.length, limits.concurrentRequests);
}

/** Everybody is heard, everything ends: what is true must now be what home has counted. */
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
      // A caller whose answer got lost asks once more.
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
      // Given up, and yet it arrives, after the one that took its place.
      world.send(step.region);
      world.lose(step.region);
      world.talk(step.region);
      world.deliverStray();
    } else if (step.do === 'unheard') {
      // Home has read it, but its answer never comes.
      world.send(step.region);
      world.deliver(step.region);
      world.lose(step.region);
    } else world[step.do](step.region);
  }
}

describe('limits kept in many regions', () => {
  test('whatever is lost, late or repeated: no limit is passed, no request counts twice, everything unused comes back', () => {
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
          }
          world.pass(SLICE_MS + SLICE_GRACE_MS + 60_000);
          expect(used(subjectState(world.quota, 'tenant').requests, world.now)).toBe(0);
          expect(used(subjectState(world.quota, 'tenant').tokens, world.now)).toBe(0);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('one region alone is refused only what its limits have no room for', () => {
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
      { numRuns: 200 },
    );
  });

  test('a region holds at most an eighth of what is left, and pays with it without asking', () => {
    const world = new World(2, { tenant: { ...UNLIMITED, requestsPerMinute: 81 } }, START);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    for (let count = 0; count < 11; count += 1) world.ask(0, `r${count}`, 'a', 1);
    expect([world.truth.size, world.regions[0]!.waiting.length]).toEqual([11, 1]);
    expect(used(subjectState(world.quota, 'tenant').requests, world.now)).toBe(11);
  });

  test('what a request leaves over goes back to its slice, here and at home', () => {
    const world = new World(1, { tenant: { ...UNLIMITED, tokensPerMinute: 801 } }, START);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    world.ask(0, 'second', 'a', 60);
    world.settle('second', 20);
    world.send(0);
    world.deliver(0);
    // The slice of 100 and the first; nothing of them is free while the region may still spend it.
    expect(used(subjectState(world.quota, 'tenant').tokens, world.now)).toBe(101);
  });

  test('an ending told twice gives its slot and tokens back once, and is one record', () => {
    const world = new World(1, { tenant: { ...UNLIMITED, tokensPerMinute: 801 } }, START);
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    world.ask(0, 'second', 'a', 60);
    world.settle('second', 20);
    world.settleAgain('second');
    world.send(0);
    world.deliver(0);
    expect(used(subjectState(world.quota, 'tenant').tokens, world.now)).toBe(101);
    expect(world.records.get('second')).toBe(1);
  });

  test('a region that is never heard again costs its slice for a minute, and nothing more', () => {
    const world = new World(
      2,
      { tenant: { ...UNLIMITED, requestsPerMinute: 80, concurrentRequests: 80 } },
      START,
    );
    world.ask(0, 'first', 'a', 1);
    world.talk(0);
    const count = () => used(subjectState(world.quota, 'tenant').requests, world.now);
    expect([count(), subjectState(world.quota, 'tenant').running]).toEqual([10, 10]);
    world.pass(SLICE_MS + SLICE_GRACE_MS);
    expect([count(), subjectState(world.quota, 'tenant').running]).toEqual([10, 1]);
    world.pass(59_000);
    expect(count()).toBe(9);
    world.pass(2_000);
    expect(count()).toBe(0);
  });
});
