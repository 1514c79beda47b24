import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventQueue, FIRST_STATE, type OutgoingEvent } from '../../../worker/limits/usage/event-queue.ts';
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

const queueOf = (events: ReturnType<typeof source>, sql = sqlStorage(), isOn = true) =>
  new EventQueue(sql, 'usage', events, isOn, FIRST_STATE);

/** Fails until the next events have been set aside. */
function exhaust(queue: EventQueue, limit: number): number {
  let now = 0;
  for (let attempt = 1; attempt <= 20; attempt += 1) {
    now = queue.nextDue(now)!;
    queue.failed(queue.due(limit, now), now);
  }
  return now;
}

test('keeps the order, and repeats with doubling pauses', () => {
  const queue = queueOf(source('a', 'b'));
  expect(ids(queue.due(1, 0))).toEqual(['a']);
  queue.failed(queue.due(1, 0), 0);
  // The second event waits for the first.
  expect(queue.due(9, 999)).toEqual([]);
  expect(queue.nextDue(0)).toBe(1_000);
  expect(ids(queue.due(9, 1_000))).toEqual(['a', 'b']);
  queue.failed(queue.due(1, 1_000), 1_000);
  expect(queue.nextDue(0)).toBe(3_000);
  queue.taken(queue.due(9, 3_000));
  expect(queue.nextDue(0)).toBeNull();
});

test('sets an event aside after twenty attempts, lists it, goes on with the next, and sends it again', () => {
  const queue = queueOf(source('bad', 'good'));
  const now = exhaust(queue, 1);
  expect(ids(queue.due(9, now))).toEqual(['good']);
  expect(queue.dead()).toEqual([{ id: 'bad', channel: 'usage', body: '{}' }]);
  expect(queue.undelivered).toEqual([
    [0, 1],
    [1, Number.MAX_SAFE_INTEGER],
  ]);
  expect(queue.replay()).toBe(1);
  expect(queue.dead()).toEqual([]);
  expect(ids(queue.due(9, now))).toEqual(['bad']);
  queue.taken(queue.due(9, now));
  expect(ids(queue.due(9, now))).toEqual(['good']);
});

test('an event that has joined a repeated batch is not set aside with it', () => {
  const events = source('old');
  const queue = queueOf(events);
  queue.failed(queue.due(9, 0), 0);
  events.rows.push('new');
  for (let attempt = 2; attempt <= 20; attempt += 1) {
    const now = queue.nextDue(0)!;
    expect(ids(queue.due(9, now))).toEqual(['old', 'new']);
    queue.failed(queue.due(9, now), now);
  }
  expect([ids(queue.dead()), ids(queue.due(9, 1e9))]).toEqual([['old'], ['new']]);
});

test('goes on after events whose rows are gone', () => {
  const events = source('a', 'b', 'c');
  const queue = queueOf(events);
  exhaust(queue, 1);
  events.rows.splice(0, 2, null, null);
  expect(queue.dead()).toEqual([]);
  expect(ids(queue.due(9, 1e9))).toEqual(['c']);
  events.rows[2] = null;
  expect([queue.due(9, 1e9), queue.nextDue(0)]).toEqual([[], null]);
});

test('sends nothing that occurred while the channel was off', () => {
  const [events, sql] = [source('a', 'b'), sqlStorage()];
  queueOf(events, sql).taken([{ position: 1, id: 'a', body: '{}' }]);
  expect(queueOf(events, sql, false).nextDue(0)).toBeNull();
  events.rows.push('c');
  const again = queueOf(events, sql);
  events.rows.push('d');
  expect(ids(again.due(9, 0))).toEqual(['d']);
});

test('each event is taken once, in order, for any faults, restarts and new events', () => {
  const step = fc.constantFrom('add', 'take', 'fail', 'restart', 'replay');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 5 }), (steps, limit) => {
      const [events, sql, taken] = [source(), sqlStorage(), [] as string[]];
      let queue = queueOf(events, sql);
      let now = 0;
      const send = (isTaken: boolean) => {
        now = queue.nextDue(now) ?? now;
        const batch = queue.due(limit, now);
        if (batch.length === 0) return;
        if (isTaken) taken.push(...ids(batch));
        if (isTaken) queue.taken(batch);
        else queue.failed(batch, now);
      };
      for (const kind of steps) {
        if (kind === 'add') events.rows.push(String(events.rows.length));
        else if (kind === 'restart') queue = queueOf(events, sql);
        else if (kind === 'replay') queue.replay();
        else send(kind === 'take');
      }
      queue.replay();
      while (queue.isWaiting) send(true);
      expect(taken.toSorted((a, b) => Number(a) - Number(b))).toEqual(events.rows);
    }),
    { numRuns: runs(300) },
  );
});
