import { expect, test } from 'vitest';
import { LruMap } from '../../shared/lru-map.ts';

test('the entries that were read or set longest ago are dropped first, until there are not too many', () => {
  const map = new LruMap<string, number>();
  for (const [key, value] of Object.entries({ a: 1, b: 2, c: 3, d: 4 })) map.set(key, value);
  map.get('a');
  map.set('b', 5);
  const dropped: number[] = [];
  map.trim(
    () => map.size > 2,
    (value) => dropped.push(value),
  );
  expect(dropped).toEqual([3, 4]);
  expect([...map]).toEqual([
    ['a', 1],
    ['b', 5],
  ]);
});
