import type { ReservationRequest } from '../../env/limiter-protocol.ts';
import { requireFormat } from '../../env/stored-format.ts';
import { priceOf } from '../../usage/reservation-id.ts';
import type { NumberedRecord } from '../../usage/usage-ledger.ts';
import { NO_USAGE, type UsageRecord } from '../../usage/usage-record.ts';
import { isEndUser } from '../end-user.ts';
import type { Slice } from '../quota/slice.ts';
import {
  emptyQuota,
  emptySubject,
  type QuotaReservation,
  type QuotaState,
  type SubjectState,
} from '../quota/state.ts';
import { type Meter, momentOf } from '../quota/window.ts';

/** What home knows of an isolate. Plain data, so that it can be stored as JSON. */
export interface IsolateState {
  /** Number of the last decision that home has applied. */
  cursor: number;
  /** Number of the last granted slice. */
  granted: number;
  slices: Slice[];
  /** Unix milliseconds of its last call, to the second. */
  heardAt: number;
  /** Number of the last request that home knows from it. */
  named: number;
  /** Unix milliseconds since which home asks the upstreams for its requests. */
  silentSince?: number;
  /** Home has settled its requests without it, and ignores its decisions. */
  gone?: boolean;
}

/** A request that home knows only from an isolate's decision. */
export type AdmittedRequest = Pick<
  ReservationRequest,
  'requestId' | 'tenantId' | 'keyId' | 'model' | 'ttlMs' | 'endUser'
>;

/** A running request: its reservation and the usage record that would be written if it ended now. */
export interface OpenReservation {
  readonly reservation: QuotaReservation;
  readonly record: UsageRecord;
  readonly ttlMs: number;
  /**
   * Null while the reservation runs. After that, Unix milliseconds at which the limiter asks the upstream and
   * writes the record.
   */
  readonly abandonAt: number | null;
}

/** The record is what gets billed if the Worker vanishes right after its reservation. */
export function openReservation(
  reservation: QuotaReservation,
  { requestId, tenantId, keyId, model, ttlMs, endUser }: AdmittedRequest,
  startedAt: number,
): OpenReservation {
  const record: UsageRecord = {
    requestId,
    tenantId,
    keyId,
    model,
    endUser: endUser?.hash ?? null,
    upstream: null,
    usage: NO_USAGE,
    cost: 0,
    priceVersion: priceOf(requestId)?.version ?? null,
    status: 'abandoned',
    errorCode: null,
    finishReasons: [],
    startedAt,
    latencyMs: 0,
    firstTokenMs: null,
  };
  return { reservation, record, ttlMs, abandonAt: null };
}

const FORMAT = 1;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS subjects (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS reservations (id TEXT PRIMARY KEY, open TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS outbox (sequence INTEGER PRIMARY KEY AUTOINCREMENT, record TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS end_users (id TEXT PRIMARY KEY, month INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS end_users_by_month ON end_users (month);
  CREATE TABLE IF NOT EXISTS isolates (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
`;

type OldPeriod = { readonly period: number; readonly used: number };

/** Version 0.2.0 stored two periods as objects, and the slots as a number. */
function parseSubject(text: string): SubjectState {
  const stored = JSON.parse(text) as SubjectState & { readonly running?: number };
  const { running, day, month, ...rest } = stored;
  if (running === undefined) return { ...emptySubject(), ...stored };
  const meterOf = ({ period, used }: OldPeriod): Meter => [[period, used]];
  const [today, thisMonth] = [day, month].map((old) => meterOf(old as unknown as OldPeriod));
  return { ...emptySubject(), ...rest, day: today!, month: thisMonth!, concurrency: [[0, running]] };
}

/** The month is the last one in which the end user was charged. */
const SAVE_END_USERS = `
  INSERT OR REPLACE INTO end_users (id, month, state)
  SELECT value->>0, value->>1, value->2 FROM json_each(?)`;

/** Rows per statement. They are bound as one JSON value, which holds at most 2 MB. */
const ROWS_PER_STATEMENT = 100;

const batches = <T>(all: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / ROWS_PER_STATEMENT) }, (_, batch) =>
    all.slice(batch * ROWS_PER_STATEMENT, (batch + 1) * ROWS_PER_STATEMENT),
  );

/**
 * The limiter's SQLite tables. The platform's output gate holds each answer until its changes are written, so
 * no counter or record is lost if the object restarts.
 */
export class LimiterStorage {
  readonly #sql: SqlStorage;

  /** @param now Unix milliseconds */
  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    requireFormat(sql, FORMAT);
    const isNew = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").toArray().length === 0;
    sql.exec(SCHEMA);
    // A ledger that is older than these tables would ignore records with an old sequence number.
    if (isNew) {
      sql.exec("INSERT INTO outbox (sequence, record) VALUES (?, '')", now);
      sql.exec('DELETE FROM outbox');
    }
  }

  /** Returns the counters, and the reservations of the open requests. */
  loadQuota(open: ReadonlyMap<string, OpenReservation>): QuotaState {
    const state = emptyQuota();
    for (const row of this.#sql.exec<{ id: string; state: string }>('SELECT id, state FROM subjects')) {
      state.subjects.set(row.id, parseSubject(row.state));
    }
    for (const [id, { reservation, abandonAt }] of open)
      if (abandonAt === null) state.reservations.set(id, reservation);
    return state;
  }

  loadOpen(): Map<string, OpenReservation> {
    const rows = this.#sql.exec<{ id: string; open: string }>('SELECT id, open FROM reservations');
    return new Map(rows.toArray().map(({ id, open }) => [id, JSON.parse(open) as OpenReservation]));
  }

  saveSubjects(state: QuotaState, ids: readonly string[]): void {
    for (const batch of batches(ids.filter((id) => !isEndUser(id)))) {
      const states = Object.fromEntries(batch.map((id) => [id, state.subjects.get(id)!]));
      const sql = 'INSERT OR REPLACE INTO subjects (id, state) SELECT key, value FROM json_each(?)';
      this.#sql.exec(sql, JSON.stringify(states));
    }
    for (const batch of batches(ids.filter(isEndUser))) {
      const rows = batch.map((id) => {
        const subject = state.subjects.get(id)!;
        return [id, subject.month.at(-1)?.[0] ?? 0, subject];
      });
      this.#sql.exec(SAVE_END_USERS, JSON.stringify(rows));
    }
  }

  /** Deletes the counters of these keys and those of end users idle for a month, the longest window. */
  dropSubjects(keys: readonly string[], now: number): void {
    for (const batch of batches(keys)) {
      const sql = 'DELETE FROM subjects WHERE id IN (SELECT value FROM json_each(?))';
      this.#sql.exec(sql, JSON.stringify(batch));
    }
    this.#sql.exec('DELETE FROM end_users WHERE month < ?', momentOf(now).month - 1);
  }

  /** Returns the counters of an end user; null if there are none. */
  loadEndUser(id: string): SubjectState | null {
    const rows = this.#sql.exec<{ state: string }>('SELECT state FROM end_users WHERE id = ?', id).toArray();
    return rows[0] ? parseSubject(rows[0].state) : null;
  }

  loadIsolates(): Map<string, IsolateState> {
    const rows = this.#sql.exec<{ id: string; state: string }>('SELECT id, state FROM isolates').toArray();
    return new Map(rows.map(({ id, state }) => [id, JSON.parse(state) as IsolateState]));
  }

  /** Null removes the isolate. */
  saveIsolate(id: string, state: IsolateState | null): void {
    if (state === null) this.#sql.exec('DELETE FROM isolates WHERE id = ?', id);
    else
      this.#sql.exec('INSERT OR REPLACE INTO isolates (id, state) VALUES (?, ?)', id, JSON.stringify(state));
  }

  saveOpen(all: readonly OpenReservation[]): void {
    for (const batch of batches(all)) {
      const values = Object.fromEntries(batch.map((open) => [open.reservation.id, open]));
      const sql = 'INSERT OR REPLACE INTO reservations (id, open) SELECT key, value FROM json_each(?)';
      this.#sql.exec(sql, JSON.stringify(values));
    }
  }

  /** Removes ended requests and puts their records into the outbox. */
  close(records: readonly UsageRecord[]): void {
    for (const batch of batches(records)) {
      const ids = JSON.stringify(batch.map(({ requestId }) => requestId));
      this.#sql.exec('DELETE FROM reservations WHERE id IN (SELECT value FROM json_each(?))', ids);
      this.#sql.exec('INSERT INTO outbox (record) SELECT value FROM json_each(?)', JSON.stringify(batch));
    }
  }

  /** Returns the oldest `limit` records of the outbox. */
  outbox(limit: number): NumberedRecord[] {
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

  /** Deletes all records up to this sequence number. */
  dropOutboxTo(sequence: number): void {
    this.#sql.exec('DELETE FROM outbox WHERE sequence <= ?', sequence);
  }
}
