import { expect, test } from 'vitest';
import { DeliveryQueue } from '../../../worker/delivery/delivery-queue.ts';
import { sqlStorage } from '../support/sql-storage.ts';

const ids = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id);

test('keeps the order of a channel, and repeats with doubling pauses', () => {
  const queue = new DeliveryQueue(sqlStorage());
  queue.add(
    'usage',
    [
      { id: 'a', body: '1' },
      { id: 'b', body: '2' },
    ],
    0,
  );
  queue.add('alert', [{ id: 'c', body: '3' }], 0);
  expect(ids(queue.due('usage', 1, 0))).toEqual(['a']);
  queue.failed(queue.due('usage', 1, 0), 0);
  // The second event waits for the first.
  expect(queue.due('usage', 9, 999)).toEqual([]);
  expect(ids(queue.due('alert', 9, 0))).toEqual(['c']);
  queue.taken(queue.due('alert', 9, 0));
  expect(queue.nextDue()).toBe(1_000);
  expect(ids(queue.due('usage', 9, 1_000))).toEqual(['a', 'b']);
  queue.failed(queue.due('usage', 1, 1_000), 1_000);
  expect(queue.nextDue()).toBe(3_000);
  queue.taken(queue.due('usage', 9, 3_000));
  expect(queue.nextDue()).toBeNull();
});

test('gives an event up after twenty attempts, lists it, goes on with the next, and sends it again', () => {
  const queue = new DeliveryQueue(sqlStorage());
  queue.add(
    'usage',
    [
      { id: 'bad', body: '{}' },
      { id: 'good', body: '{}' },
    ],
    0,
  );
  let now = 0;
  for (let attempt = 1; attempt <= 20; attempt += 1) {
    now = queue.nextDue()!;
    expect(ids(queue.due('usage', 1, now))).toEqual(['bad']);
    queue.failed(queue.due('usage', 1, now), now);
  }
  expect(ids(queue.due('usage', 9, now))).toEqual(['good']);
  expect(queue.dead(9, '')).toEqual([{ id: 'bad', channel: 'usage', body: '{}' }]);
  expect(queue.dead(9, 'bad')).toEqual([]);
  expect(queue.replay(now)).toBe(1);
  expect(queue.dead(9, '')).toEqual([]);
  expect(ids(queue.due('usage', 9, now))).toEqual(['bad', 'good']);
});

test('lists what was given up page by page', () => {
  const queue = new DeliveryQueue(sqlStorage());
  const all = Array.from({ length: 5 }, (_, index) => ({ id: `e${5 - index}`, body: '{}' }));
  queue.add('usage', all, 0);
  for (let attempt = 0; attempt < 20; attempt += 1) queue.failed(queue.due('usage', 9, 1e9), 0);
  const pages = [queue.dead(2, ''), queue.dead(2, 'e4'), queue.dead(2, 'e2')].map(ids);
  expect(pages).toEqual([['e5', 'e4'], ['e3', 'e2'], ['e1']]);
});
