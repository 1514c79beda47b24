/** `alert`: about a limit, to the tenant's webhook. `usage`: a billed request, to the operator. */
export type Channel = 'alert' | 'usage';

export interface QueuedEvent {
  readonly sequence: number;
  /** Stays the same when the event is sent again. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
}

/** An event that the endpoint has refused too often. */
export interface DeadEvent {
  readonly id: string;
  readonly channel: Channel;
  readonly body: string;
}

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 3_600_000;
/** With doubling pauses up to an hour, the last attempt is about nine hours after the first. */
const MAX_ATTEMPTS = 20;

/**
 * The events of one tenant that wait for their endpoint, in its object's database. Each channel sends in
 * order: an event waits until those before it have been taken, or have failed for good.
 */
export class DeliveryQueue {
  readonly #sql: SqlStorage;
  /** False if no event can be waiting: saves a query per call of the object. */
  #mayWait = true;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`
      CREATE TABLE IF NOT EXISTS deliveries (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, due_at INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0
      );
      CREATE INDEX IF NOT EXISTS deliveries_waiting ON deliveries (dead, channel, sequence);`);
  }

  add(channel: Channel, events: readonly Omit<QueuedEvent, 'sequence'>[], now: number): void {
    const sql = 'INSERT INTO deliveries (channel, id, body, due_at) VALUES (?, ?, ?, ?)';
    for (const { id, body } of events) this.#sql.exec(sql, channel, id, body, now);
    if (events.length > 0) this.#mayWait = true;
  }

  /** Returns the oldest events of a channel, if they are due. */
  due(channel: Channel, limit: number, now: number): QueuedEvent[] {
    const sql =
      'SELECT sequence, id, body, due_at FROM deliveries WHERE dead = 0 AND channel = ? ORDER BY sequence LIMIT ?';
    const rows = this.#sql.exec<{ sequence: number; id: string; body: string; due_at: number }>(
      sql,
      channel,
      limit,
    );
    const events = rows.toArray();
    return (events[0]?.due_at ?? now + 1) <= now ? events : [];
  }

  /** Unix milliseconds at which the next events are due; null = none waits. */
  nextDue(): number | null {
    if (!this.#mayWait) return null;
    const rows = this.#sql.exec<{ due_at: number }>(`
      SELECT due_at FROM deliveries WHERE sequence IN
        (SELECT MIN(sequence) FROM deliveries WHERE dead = 0 GROUP BY channel) ORDER BY due_at LIMIT 1`);
    const [next] = rows.toArray();
    this.#mayWait = next !== undefined;
    return next?.due_at ?? null;
  }

  taken(events: readonly QueuedEvent[]): void {
    this.#sql.exec(
      'DELETE FROM deliveries WHERE sequence IN (SELECT value FROM json_each(?))',
      numbers(events),
    );
  }

  /** Sends the events again after a pause, or gives them up after too many attempts. */
  failed(events: readonly QueuedEvent[], now: number): void {
    this.#sql.exec(
      `UPDATE deliveries SET attempts = attempts + 1, dead = attempts + 1 >= ${MAX_ATTEMPTS},
        due_at = ? + MIN(${MAX_PAUSE_MS}, ${FIRST_PAUSE_MS} << MIN(attempts, 20))
      WHERE sequence IN (SELECT value FROM json_each(?))`,
      now,
      numbers(events),
    );
  }

  /** Returns the oldest events that were given up, after the one with this id. */
  dead(limit: number, after: string): DeadEvent[] {
    const sql = `SELECT id, channel, body FROM deliveries WHERE dead = 1 AND sequence >
      COALESCE((SELECT MAX(sequence) FROM deliveries WHERE id = ?), 0) ORDER BY sequence LIMIT ?`;
    return this.#sql.exec<{ id: string; channel: Channel; body: string }>(sql, after, limit).toArray();
  }

  /** Sends all events again that were given up. Returns their number. */
  replay(now: number): number {
    this.#mayWait = true;
    const dead = this.#sql.exec('SELECT sequence FROM deliveries WHERE dead = 1').toArray();
    this.#sql.exec('UPDATE deliveries SET dead = 0, attempts = 0, due_at = ? WHERE dead = 1', now);
    return dead.length;
  }
}

const numbers = (events: readonly QueuedEvent[]): string =>
  JSON.stringify(events.map(({ sequence }) => sequence));
