import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  DeliveryCursor,
  FIRST_STATE,
  type OutgoingEvent,
} from '../../../worker/limits/usage/delivery-cursor.ts';
import { runs } from '../../support/random.ts';
import { sqlStorage } from '../support/sql-storage.ts';

const ids = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id);

/** The rows of a channel, with positions from 1. */
function source(...names: string[]) {
  const rows = names.map((id) => id as string | null);
  return {
    rows,
    get last() {
      return rows.length;
    },
    after: (position: number, limit: number): OutgoingEvent[] =>
      rows
        .flatMap((id, index) => (id === null ? [] : [{ position: index + 1, id, body: '{}' }]))
        .filter((event) => event.position > position)
        .slice(0, limit),
  };
}

const cursorOf = (events: ReturnType<typeof source>, sql = sqlStorage(), isOn = true) =>
  new DeliveryCursor(sql, 'usage', events, isOn, FIRST_STATE);

/** Fails until the next events have been set aside. */
function exhaust(cursor: DeliveryCursor, limit: number): number {
  let now = 0;
  for (let attempt = 1; attempt <= 20; attempt += 1) {
    now = cursor.nextDue(now)!;
    cursor.failed(cursor.due(limit, now), now);
  }
  return now;
}

test('keeps the order, and repeats with doubling pauses', () => {
  const cursor = cursorOf(source('a', 'b'));
  expect(ids(cursor.due(1, 0))).toEqual(['a']);
  cursor.failed(cursor.due(1, 0), 0);
  // The second event waits for the first.
  expect(cursor.due(9, 999)).toEqual([]);
  expect(cursor.nextDue(0)).toBe(1_000);
  expect(ids(cursor.due(9, 1_000))).toEqual(['a', 'b']);
  cursor.failed(cursor.due(1, 1_000), 1_000);
  expect(cursor.nextDue(0)).toBe(3_000);
  cursor.taken(cursor.due(9, 3_000));
  expect(cursor.nextDue(0)).toBeNull();
});

test('sets an event aside after twenty attempts, lists it, goes on with the next, and sends it again', () => {
  const cursor = cursorOf(source('bad', 'good'));
  const now = exhaust(cursor, 1);
  expect(ids(cursor.due(9, now))).toEqual(['good']);
  expect(cursor.dead()).toEqual([{ id: 'bad', channel: 'usage', body: '{}' }]);
  expect(cursor.undelivered).toEqual([
    [0, 1],
    [1, Number.MAX_SAFE_INTEGER],
  ]);
  expect(cursor.replay()).toBe(1);
  expect(cursor.dead()).toEqual([]);
  expect(ids(cursor.due(9, now))).toEqual(['bad']);
  cursor.taken(cursor.due(9, now));
  expect(ids(cursor.due(9, now))).toEqual(['good']);
});

test('an event that has joined a repeated batch is not set aside with it', () => {
  const events = source('old');
  const cursor = cursorOf(events);
  cursor.failed(cursor.due(9, 0), 0);
  events.rows.push('new');
  for (let attempt = 2; attempt <= 20; attempt += 1) {
    const now = cursor.nextDue(0)!;
    expect(ids(cursor.due(9, now))).toEqual(['old', 'new']);
    cursor.failed(cursor.due(9, now), now);
  }
  expect([ids(cursor.dead()), ids(cursor.due(9, 1e9))]).toEqual([['old'], ['new']]);
});

test('goes on after events whose rows are gone', () => {
  const events = source('a', 'b', 'c');
  const cursor = cursorOf(events);
  exhaust(cursor, 1);
  events.rows.splice(0, 2, null, null);
  expect(cursor.dead()).toEqual([]);
  expect(ids(cursor.due(9, 1e9))).toEqual(['c']);
  events.rows[2] = null;
  expect([cursor.due(9, 1e9), cursor.nextDue(0)]).toEqual([[], null]);
});

test('sends nothing that occurred while the channel was off', () => {
  const [events, sql] = [source('a', 'b'), sqlStorage()];
  cursorOf(events, sql).taken([{ position: 1, id: 'a', body: '{}' }]);
  expect(cursorOf(events, sql, false).nextDue(0)).toBeNull();
  events.rows.push('c');
  const again = cursorOf(events, sql);
  events.rows.push('d');
  expect(ids(again.due(9, 0))).toEqual(['d']);
});

test('each event is taken once, in order, for any faults, restarts and new events', () => {
  const step = fc.constantFrom('add', 'take', 'fail', 'restart', 'replay');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 5 }), (steps, limit) => {
      const [events, sql, taken] = [source(), sqlStorage(), [] as string[]];
      let cursor = cursorOf(events, sql);
      let now = 0;
      const send = (isTaken: boolean) => {
        now = cursor.nextDue(now) ?? now;
        const batch = cursor.due(limit, now);
        if (batch.length === 0) return;
        if (isTaken) taken.push(...ids(batch));
        if (isTaken) cursor.taken(batch);
        else cursor.failed(batch, now);
      };
      for (const kind of steps) {
        if (kind === 'add') events.rows.push(String(events.rows.length));
        else if (kind === 'restart') cursor = cursorOf(events, sql);
        else if (kind === 'replay') cursor.replay();
        else send(kind === 'take');
      }
      cursor.replay();
      while (cursor.isWaiting) send(true);
      expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(events.rows);
    }),
    { numRuns: runs(300) },
  );
});
