import { expect, test } from 'vitest';
import { type Limits, UNLIMITED } from '../../../../shared/tenant.ts';
import { SLICE_GRACE_MS, SLICE_MS } from '../../../../worker/limits/quota/slice.ts';
import { periodUse, subjectState } from '../../../../worker/limits/quota/state.ts';
import { used } from '../../../../worker/limits/quota/window.ts';
import { World } from '../objects/region-world.ts';

const NOON = Date.UTC(2026, 0, 31, 12);

/** Returns a tenant with one region. */
const worldWith = (limits: Partial<Limits>, now = NOON) =>
  new World(1, { tenant: { ...UNLIMITED, ...limits } }, now);

const tokensIn = (world: World, period: 'day' | 'month'): number =>
  periodUse(subjectState(world.quota, 'tenant'), period, world.now);

/** Returns the tenant's requests in the last minute. */
const requestsOf = (world: World): number => used(subjectState(world.quota, 'tenant').requests, world.now);

test('ends a slice at midnight UTC and charges later requests to the new day', () => {
  const world = worldWith({ tokensPerDay: 800 }, Date.UTC(2026, 0, 31, 23, 59, 56));
  world.ask(0, 'first', 'a', 1);
  world.talk(0);
  world.pass(3999);
  world.ask(0, 'before midnight', 'a', 10);
  expect(world.regions[0]!.waiting).toEqual([]);
  world.pass(1);
  world.ask(0, 'after midnight', 'a', 10);
  world.talk(0);
  world.pass(SLICE_MS);
  world.talk(0);
  expect(tokensIn(world, 'day')).toBe(10);
});

test('refunds an unused slice to the day and to the month', () => {
  const world = worldWith({ tokensPerDay: 800, tokensPerMonth: 900 });
  world.ask(0, 'first', 'a', 1);
  world.talk(0);
  world.ask(0, 'second', 'a', 20);
  for (let slices = 0; slices < 2; slices += 1) {
    world.pass(SLICE_MS);
    world.talk(0);
  }
  expect([tokensIn(world, 'day'), tokensIn(world, 'month')]).toEqual([21, 21]);
});

test('grants no slice above the limits, and refunds nothing', () => {
  const world = worldWith({ tokensPerMinute: 80 });
  world.ask(0, 'first', 'a', 10);
  world.talk(0);
  world.settle('first', 500);
  world.ask(0, 'second', 'a', 10);
  world.talk(0);
  world.pass(SLICE_MS);
  world.ask(0, 'third', 'a', 10);
  world.talk(0);
  expect(used(subjectState(world.quota, 'tenant').tokens, world.now)).toBe(500);
  expect([world.holders(), world.truth.size]).toEqual([[], 1]);
});

test('grants no slice if one limit leaves too little', () => {
  const world = worldWith({ requestsPerMinute: 8, concurrentRequests: 800 });
  world.ask(0, 'first', 'a', 1);
  world.talk(0);
  expect([world.holders(), subjectState(world.quota, 'tenant').running]).toEqual([[], 1]);
});

test('counts a late region’s requests from the end of its slice', () => {
  const world = worldWith({ requestsPerMinute: 80 });
  world.ask(0, 'first', 'a', 1);
  world.talk(0);
  world.ask(0, 'second', 'a', 1);
  world.send(0);
  world.lose(0);
  world.pass(SLICE_MS + SLICE_GRACE_MS);
  expect(requestsOf(world)).toBe(10);
  world.pass(5000);
  world.talk(0);
  expect(requestsOf(world)).toBe(2);
  world.pass(25_000);
  expect(requestsOf(world)).toBe(1);
  world.pass(30_000);
  expect(requestsOf(world)).toBe(0);
});
