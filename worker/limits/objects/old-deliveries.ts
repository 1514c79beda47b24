import { hasTable } from '@continuo/shared/stored-format.ts';
import {
  type Channel,
  type EventSource,
  FIRST_STATE,
  type OutgoingEvent,
  type QueueState,
} from '../usage/event-queue.ts';
import { usageEvent } from '../usage/usage-event.ts';
import type { LimiterStorage } from './limiter-storage.ts';

interface OldRow {
  readonly position: number;
  readonly attempts: number;
  readonly dueAt: number;
  readonly dead: number;
}

/**
 * The events that a release up to 0.2.0 has stored to be sent, in the table `deliveries`: its events had
 * copies of their own. They come before all events of their channel, and have the lowest positions.
 */
export class OldDeliveries {
  readonly #sql: SqlStorage;
  readonly #isThere: boolean;
  /** Position of the last one. */
  readonly last: number;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    const lastIn = () =>
      sql.exec<{ last: number | null }>('SELECT MAX(sequence) AS last FROM deliveries').one().last;
    const last = hasTable(sql, 'deliveries') ? lastIn() : null;
    this.#isThere = last !== null;
    this.last = last ?? 0;
    if (!this.#isThere) sql.exec('DROP TABLE IF EXISTS deliveries');
  }

  /** Returns where the older release was with a channel. */
  stateOf(channel: Channel): QueueState {
    if (!this.#isThere) return FIRST_STATE;
    const rows = this.#sql
      .exec<OldRow & Record<string, number>>(
        `SELECT sequence AS position, attempts, due_at AS dueAt, dead FROM deliveries
        WHERE channel = ? ORDER BY sequence`,
        channel,
      )
      .toArray();
    const first = rows.find(({ dead }) => dead === 0);
    const position = first === undefined ? this.last : first.position - 1;
    const refused = rows
      .filter((row) => row.position <= position)
      .map((row) => ({ positions: [row.position - 1, row.position] as const, isReplayed: false }));
    const { attempts, dueAt } = first ?? FIRST_STATE;
    const tried = rows.findLast((row) => row.attempts === attempts)?.position ?? position;
    return { position, attempts, tried, dueAt, refused };
  }

  /** Returns the oldest events of a channel after a position. */
  after(channel: Channel, position: number, limit: number): OutgoingEvent[] {
    if (position >= this.last) return [];
    return this.#sql
      .exec<OutgoingEvent & Record<string, string | number>>(
        `SELECT sequence AS position, id, body FROM deliveries
        WHERE channel = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
        channel,
        position,
        limit,
      )
      .toArray();
  }

  /** Deletes events that were taken. */
  delete(events: readonly OutgoingEvent[]): void {
    const old = events.filter(({ position }) => position <= this.last);
    if (old.length === 0) return;
    const positions = JSON.stringify(old.map(({ position }) => position));
    this.#sql.exec('DELETE FROM deliveries WHERE sequence IN (SELECT value FROM json_each(?))', positions);
  }
}

/** The records of ended requests as events for billing. */
export const billedRecords = (
  storage: Pick<LimiterStorage, 'lastRecord' | 'recordsAfter'>,
  old: Pick<OldDeliveries, 'last' | 'after'>,
): EventSource => ({
  get last() {
    return storage.lastRecord;
  },
  after: (position, limit) =>
    [
      ...old.after('usage', position, limit),
      ...storage.recordsAfter(Math.max(position, old.last), limit).map(usageEvent),
    ].slice(0, limit),
});
