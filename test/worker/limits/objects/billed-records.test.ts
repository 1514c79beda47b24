import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LimiterStorage } from '../../../../worker/limits/objects/limiter-storage.ts';
import { billedRecords, OldDeliveries } from '../../../../worker/limits/objects/old-deliveries.ts';
import { EventQueue } from '../../../../worker/limits/usage/event-queue.ts';
import { TenantLedger } from '../../../../worker/limits/usage/tenant-ledger.ts';
import { runs } from '../../../support/random.ts';
import { sqlStorage } from '../../support/sql-storage.ts';
import { recordOf } from '../usage/usage-fixtures.ts';

const ids = (events: readonly { readonly id: string }[]) => events.map(({ id }) => id);

/** A tenant's object, as far as billing sees it. */
class BilledObject {
  readonly sql = sqlStorage();
  readonly ended: string[] = [];
  readonly taken: string[] = [];
  now = 1_000;
  ledger!: TenantLedger;
  storage!: LimiterStorage;
  queue!: EventQueue;
  #old!: OldDeliveries;

  restart(): void {
    const { sql } = this;
    this.#old = new OldDeliveries(sql);
    this.ledger = new TenantLedger(sql);
    this.storage = new LimiterStorage(sql, this.ledger, () => this.now, this.#old.last);
    const records = billedRecords(this.storage, this.#old);
    this.queue = new EventQueue(sql, 'usage', records, true, this.#old.stateOf('usage'));
  }

  end(...names: string[]): void {
    this.ended.push(...names);
    for (const requestId of names) this.storage.end(recordOf({ requestId }));
    this.storage.commit();
  }

  send(limit: number, isTaken = true): void {
    const events = this.queue.due(limit, this.now);
    if (events.length === 0) return;
    if (isTaken) {
      this.taken.push(...ids(events));
      this.queue.taken(events);
      this.#old.delete(events);
    } else this.queue.failed(events, this.now);
  }
}

/** Writes what releases up to 0.2.0 have stored: events with copies of their own, some of them set aside. */
function olderObject(): BilledObject {
  const object = new BilledObject();
  const { sql } = object;
  sql.exec(`
    CREATE TABLE deliveries (
      sequence INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
      attempts INTEGER NOT NULL DEFAULT 0, due_at INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0
    );`);
  const rows = [
    [3, 'usage', 'dead1', 20, 1],
    [5, 'usage', 'dead2', 20, 1],
    [6, 'alert', 'alert', 3, 0],
    [8, 'usage', 'wait1', 2, 0],
    [9, 'usage', 'wait2', 0, 0],
  ] as const;
  for (const [sequence, channel, id, attempts, dead] of rows)
    sql.exec(
      'INSERT INTO deliveries VALUES (?, ?, ?, ?, ?, 0, ?)',
      sequence,
      channel,
      id,
      '{}',
      attempts,
      dead,
    );
  return object;
}

test('an object with the queue of an older release loses and repeats nothing', () => {
  const object = olderObject();
  object.restart();
  object.end('new1');
  object.restart();
  object.end('new2');
  expect(ids(object.queue.dead())).toEqual(['dead1', 'dead2']);
  object.send(3);
  expect(object.taken).toEqual(['wait1', 'wait2', 'new1']);
  object.restart();
  expect(object.queue.replay()).toBe(2);
  for (let batch = 0; batch < 9; batch += 1) object.send(9);
  expect(object.taken.slice(3)).toEqual(['dead1', 'dead2', 'new2']);
  // Only the alert is left in the old table.
  expect(object.sql.exec('SELECT id FROM deliveries').toArray()).toEqual([{ id: 'alert' }]);
});

test('retention and erasure keep what billing does not have, refused records included', () => {
  const object = new BilledObject();
  object.restart();
  for (const name of ['refused', 'taken', 'waiting']) {
    object.end(name);
    object.storage.checkpoint();
    object.now += 1;
  }
  for (let attempt = 1; attempt <= 20; attempt += 1) {
    object.now += 3_600_000;
    object.send(1, false);
  }
  object.send(1);
  object.ledger.requests.prune(Number.MAX_SAFE_INTEGER, object.queue.undelivered);
  object.ledger.erase(false, object.storage.number, object.queue.undelivered);
  expect(object.ledger.requests.after(0, 9).map(({ record }) => record.requestId)).toEqual([
    'refused',
    'waiting',
  ]);
  object.queue.replay();
  object.send(9);
  object.send(9);
  expect(object.taken).toEqual(['taken', 'refused', 'waiting']);
  object.ledger.requests.prune(Number.MAX_SAFE_INTEGER, object.queue.undelivered);
  expect(object.ledger.requests.after(0, 9)).toEqual([]);
});

test('billing gets each record once, for any order of ends, checkpoints, retention and restarts', () => {
  const step = fc.constantFrom('end', 'many', 'send', 'fail', 'checkpoint', 'restart', 'prune');
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, isOlder) => {
      const object = isOlder ? olderObject() : new BilledObject();
      object.restart();
      const last = () => object.ended.length;
      for (const kind of steps) {
        object.now += 3_600_000;
        if (kind === 'end') object.end(`r${last()}`);
        else if (kind === 'many')
          object.end(...Array.from({ length: 1_200 }, (_, index) => `r${last() + index}`));
        else if (kind === 'send' || kind === 'fail') object.send(100, kind === 'send');
        else if (kind === 'checkpoint') object.storage.checkpoint();
        else if (kind === 'restart') object.restart();
        else object.ledger.requests.prune(Number.MAX_SAFE_INTEGER, object.queue.undelivered);
      }
      object.queue.replay();
      object.now += 3_600_000;
      while (object.queue.isWaiting) object.send(100);
      const expected = [...(isOlder ? ['dead1', 'dead2', 'wait1', 'wait2'] : []), ...object.ended];
      expect(object.taken.toSorted()).toEqual(expected.toSorted());
    }),
    { numRuns: runs(50) },
  );
});
