import type { UsageRecord } from '../../usage/usage-record.ts';
import { emptyQuota, type QuotaLease, type QuotaState, type SubjectState } from '../quota/state.ts';
import type { RegionState } from './home-slices.ts';

/** A running request: its reservation and the record that would be written if it ended now. */
export interface OpenRequest {
  readonly lease: QuotaLease;
  readonly record: UsageRecord;
  readonly leaseMs: number;
  /**
   * It holds nothing any more: Unix milliseconds at which its upstream is asked and its record written. Null while its
   * lease runs.
   */
  readonly abandonAt: number | null;
}

export interface OutboxEntry {
  /** Increases with every record of the tenant, without reuse. */
  readonly sequence: number;
  readonly record: UsageRecord;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS subjects (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, open TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS outbox (sequence INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS blocked (id TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS regions (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
`;

/** Several things are bound as one value, but no value may be larger than two megabytes. */
const TOGETHER = 100;

const parts = <T>(all: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / TOGETHER) }, (_, part) =>
    all.slice(part * TOGETHER, (part + 1) * TOGETHER),
  );

/**
 * The limiter's SQLite tables. Every change is written before the answer leaves (the platform's output gate), so that
 * neither a counter nor a record depends on the object staying in memory.
 */
export class LimiterStorage {
  readonly #sql: SqlStorage;

  /** @param now Unix milliseconds */
  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    const isNew = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").toArray().length === 0;
    sql.exec(SCHEMA);
    // A ledger that was moved, or has outlived these tables, takes what bears an old number for written.
    if (isNew) this.#numberOutboxFrom(now);
  }

  #numberOutboxFrom(sequence: number): void {
    this.#sql.exec("INSERT INTO outbox (sequence, record) VALUES (?, '')", sequence);
    this.#sql.exec('DELETE FROM outbox');
  }

  /** The counters, together with the leases of the open requests. */
  loadQuota(open: ReadonlyMap<string, OpenRequest>): QuotaState {
    const state = emptyQuota();
    for (const row of this.#sql.exec<{ id: string; state: string }>('SELECT id, state FROM subjects')) {
      state.subjects.set(row.id, JSON.parse(row.state) as SubjectState);
    }
    for (const [id, { lease, abandonAt }] of open) if (abandonAt === null) state.leases.set(id, lease);
    return state;
  }

  loadOpen(): Map<string, OpenRequest> {
    const rows = this.#sql.exec<{ id: string; open: string }>('SELECT id, open FROM requests');
    return new Map(rows.toArray().map(({ id, open }) => [id, JSON.parse(open) as OpenRequest]));
  }

  loadBlocked(): Set<string> {
    return new Set(
      this.#sql
        .exec<{ id: string }>('SELECT id FROM blocked')
        .toArray()
        .map(({ id }) => id),
    );
  }

  saveSubjects(state: QuotaState, ids: readonly string[]): void {
    for (const some of parts(ids)) {
      const states = Object.fromEntries(some.map((id) => [id, state.subjects.get(id)]));
      const sql = 'INSERT OR REPLACE INTO subjects (id, state) SELECT key, value FROM json_each(?)';
      this.#sql.exec(sql, JSON.stringify(states));
    }
  }

  loadRegions(): Map<string, RegionState> {
    const rows = this.#sql.exec<{ id: string; state: string }>('SELECT id, state FROM regions').toArray();
    return new Map(rows.map(({ id, state }) => [id, JSON.parse(state) as RegionState]));
  }

  saveRegion(id: string, state: RegionState): void {
    this.#sql.exec('INSERT OR REPLACE INTO regions (id, state) VALUES (?, ?)', id, JSON.stringify(state));
  }

  saveOpen(open: OpenRequest): void {
    const value = JSON.stringify(open);
    this.#sql.exec('INSERT OR REPLACE INTO requests (id, open) VALUES (?, ?)', open.lease.id, value);
  }

  /** These requests have ended: their records go to the outbox. */
  close(records: readonly UsageRecord[]): void {
    for (const some of parts(records)) {
      const ids = JSON.stringify(some.map(({ requestId }) => requestId));
      this.#sql.exec('DELETE FROM requests WHERE id IN (SELECT value FROM json_each(?))', ids);
      this.#sql.exec('INSERT INTO outbox (record) SELECT value FROM json_each(?)', JSON.stringify(some));
    }
  }

  outbox(limit: number): OutboxEntry[] {
    return this.#sql
      .exec<{ sequence: number; record: string }>(
        'SELECT sequence, record FROM outbox ORDER BY sequence LIMIT ?',
        limit,
      )
      .toArray()
      .map(({ sequence, record }) => ({ sequence, record: JSON.parse(record) as UsageRecord }));
  }

  outboxIsEmpty(): boolean {
    return this.#sql.exec('SELECT 1 FROM outbox LIMIT 1').toArray().length === 0;
  }

  dropOutboxTo(sequence: number): void {
    this.#sql.exec('DELETE FROM outbox WHERE sequence <= ?', sequence);
  }

  setBlocked(id: string, blocked: boolean): void {
    if (blocked) this.#sql.exec('INSERT OR IGNORE INTO blocked (id) VALUES (?)', id);
    else this.#sql.exec('DELETE FROM blocked WHERE id = ?', id);
  }
}
