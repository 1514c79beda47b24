import { expect, test } from 'vitest';
import { PlaceClaims } from '../../../../worker/limits/objects/place-claims.ts';

const claim = (id: string, listed: readonly string[] = [], counted = listed.length) => ({
  kind: 'files',
  id,
  listed,
  counted,
  max: 2,
});

test('creations that have listed the same objects get no more places than there are', () => {
  const places = new PlaceClaims();
  const taken = ['b', 'c', 'd'].map((id) => places.take(claim(id, ['a']), 0));
  expect(taken).toEqual([true, false, false]);
  expect(places.take({ ...claim('e'), kind: 'batches' }, 0)).toBe(true);
});

test('an object that is listed takes no second place, and one that has ended none', () => {
  const places = new PlaceClaims();
  expect(places.take(claim('a'), 0)).toBe(true);
  expect(places.take(claim('b', ['a']), 0)).toBe(true);
  expect(places.take(claim('c', ['a', 'b']), 0)).toBe(false);
  expect(places.take(claim('c', ['a', 'b'], 1), 0)).toBe(true);
});

test('an object that was never written gives its place back after 30 s', () => {
  const places = new PlaceClaims();
  expect([places.take(claim('a'), 0), places.take(claim('b'), 0)]).toEqual([true, true]);
  expect(places.take(claim('c'), 29_999)).toBe(false);
  expect(places.take(claim('c'), 30_000)).toBe(true);
});
