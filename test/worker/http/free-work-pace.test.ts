import { expect, test } from 'vitest';
import { freeWorkPace } from '../../../worker/http/free-work-pace.ts';

const LARGE = 2 ** 20;

/** A pace whose pauses do not end, so that all refusals come at the same time. */
function newPace() {
  const clock = { now: 1e12 };
  const waits: number[] = [];
  const turn = freeWorkPace(
    () => clock.now,
    async (ms) => waits.push(ms),
  );
  return { clock, waits, turn };
}

test('the first large body and all small ones are refused at once', async () => {
  const { turn, waits } = newPace();
  await turn('a', LARGE);
  for (let count = 0; count < 1000; count++) await turn('a', 1000);
  expect(waits).toEqual([]);
});

test('more of them are refused at 8 MiB per second, and none later than after a second', async () => {
  const { turn, waits, clock } = newPace();
  for (let count = 0; count < 16; count++) await turn('a', LARGE);
  expect(waits.slice(0, 3)).toEqual([128, 256, 384]);
  expect(waits.slice(7)).toEqual(Array.from({ length: 8 }, () => 1000));
  clock.now += 1128;
  await turn('a', LARGE);
  expect(waits).toHaveLength(15);
});

test('tenants do not wait for each other', async () => {
  const { turn, waits } = newPace();
  for (let count = 0; count < 10; count++) await turn('', LARGE);
  const before = waits.length;
  await turn('a', LARGE);
  expect(waits).toHaveLength(before);
});

test('a clock that goes back delays no refusal for longer than a second', async () => {
  const { turn, waits, clock } = newPace();
  await turn('a', LARGE);
  clock.now -= 1e9;
  await turn('a', LARGE);
  expect(waits).toEqual([1000]);
});
