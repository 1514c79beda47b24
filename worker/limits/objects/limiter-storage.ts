import { requireFormat } from '@continuo/shared/stored-format.ts';
import { isEndUser } from '../end-user.ts';
import type { Slice } from '../quota/slice.ts';
import { emptySubject, type SubjectState } from '../quota/state.ts';
import { type Meter, momentOf } from '../quota/window.ts';
import { type NumberedRecord, numbered } from '../usage/request-records.ts';
import type { TenantLedger } from '../usage/tenant-ledger.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import { Journal } from './journal.ts';
import type { OpenReservation } from './open-reservation.ts';
import { PackedRows } from './packed-rows.ts';

/** What the object knows of an isolate. Plain data, so that it can be stored as JSON. */
export interface IsolateState {
  /** Number of the last decision that the object has applied. */
  cursor: number;
  /** Number of the last granted slice. */
  granted: number;
  slices: Slice[];
  /** Unix milliseconds of its last call, to the second. */
  heardAt: number;
  /** Number of the last request that the object knows from it. */
  named: number;
  /** Unix milliseconds since which the object asks the upstreams for its requests. */
  lostSince?: number;
  /** The object has settled its requests without it, and ignores its decisions. */
  gone?: boolean;
}

/** Rises with the journal and the ledger: the release before reads neither. */
const FORMAT = 2;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS subjects (id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS end_users (id TEXT PRIMARY KEY, month INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS end_users_by_month ON end_users (month);
`;

type OldPeriod = { readonly period: number; readonly used: number };

/** Version 0.2.0 stored two periods as objects, and the slots as a number. */
function subjectOf(stored: SubjectState & { readonly running?: number }): SubjectState {
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

/** New values of what one call has changed; null = it is gone. Isolates may wait for the next call. */
interface Changes {
  readonly subjects: ReadonlyMap<string, SubjectState>;
  readonly open: ReadonlyMap<string, OpenReservation | null>;
  readonly records: readonly UsageRecord[];
}

/** An entry of the journal. */
type Entry = {
  readonly [Part in 'subjects' | 'open' | 'isolates']: Readonly<Record<string, unknown>>;
} & Pick<Changes, 'records'>;

/**
 * What a tenant's object keeps: counters, open requests, isolates and the ledger. A call's changes are one
 * row of the journal; a checkpoint writes those of many calls to their tables. The platform's output gate
 * holds each answer until its changes are written, so no counter or record is lost if the object restarts.
 */
export class LimiterStorage {
  readonly #sql: SqlStorage;
  readonly #journal: Journal<Entry>;
  readonly #ledger: TenantLedger;
  readonly #requestsAt: () => number | null;
  readonly #open: PackedRows<OpenReservation>;
  readonly #isolates: PackedRows<IsolateState>;
  /** Counters that have changed since the last checkpoint. */
  readonly #subjects = new Map<string, SubjectState>();
  #records: UsageRecord[] = [];
  /** Number of the last record in the ledger. */
  #stored: number;
  /** Isolates whose changes are not in the journal yet. */
  readonly #waiting = new Map<string, IsolateState | null>();
  #isDue = false;

  /**
   * Reads what is stored.
   * @param requestsAt time in Unix milliseconds under which single requests are stored; null = they are not
   * @param known number of the last record that an older release has ended
   */
  constructor(sql: SqlStorage, ledger: TenantLedger, requestsAt: () => number | null, known = 0) {
    this.#sql = sql;
    this.#ledger = ledger;
    this.#requestsAt = requestsAt;
    requireFormat(sql, FORMAT);
    sql.exec(SCHEMA);
    this.#journal = new Journal(sql);
    this.#open = new PackedRows(sql, { table: 'request_rows', older: ['reservations', 'open'] });
    this.#isolates = new PackedRows(sql, { table: 'isolate_rows', older: ['isolates', 'state'] });
    for (const { subjects, open, isolates, records } of this.#journal.entries()) {
      for (const [id, state] of Object.entries(subjects))
        this.#subjects.set(id, subjectOf(state as SubjectState));
      this.#isolates.change(Object.entries(isolates) as [string, IsolateState | null][]);
      this.#open.change(Object.entries(open) as [string, OpenReservation | null][]);
      this.#records.push(...records);
    }
    this.#stored = this.#journal.records ?? known;
    // The number that an older release has reached is not stored yet.
    if (this.#journal.records === null) this.checkpoint();
  }

  /** Number of the last record. */
  get lastRecord(): number {
    return this.#stored + this.#records.length;
  }

  /** Returns the oldest records after a number. */
  recordsAfter(number: number, limit: number): NumberedRecord[] {
    const stored = number < this.#stored ? this.#ledger.requests.after(number, limit) : [];
    if (stored.length === limit) return stored;
    return [...stored, ...numbered(this.#records, this.lastRecord, number)].slice(0, limit);
  }

  /** Returns the newest records before a number, the last one first. */
  recordsBefore(number: number, limit: number): NumberedRecord[] {
    const waiting = numbered(this.#records, this.lastRecord, this.#stored)
      .filter((each) => each.number < number)
      .reverse();
    if (waiting.length >= limit) return waiting.slice(0, limit);
    return [...waiting, ...this.#ledger.requests.before(number, limit - waiting.length)];
  }

  /** Number of the last change. */
  get number(): number {
    return this.#journal.number;
  }

  /** Records that are not in the ledger yet. */
  get records(): readonly UsageRecord[] {
    return this.#records;
  }

  /** Returns the counters of all subjects but end users. */
  loadSubjects(): Map<string, SubjectState> {
    const rows = this.#sql.exec<{ id: string; state: string }>('SELECT id, state FROM subjects').toArray();
    const stored = rows.map(({ id, state }) => [id, subjectOf(JSON.parse(state) as SubjectState)] as const);
    return new Map([...stored, ...[...this.#subjects].filter(([id]) => !isEndUser(id))]);
  }

  /** Returns the counters of an end user; null if there are none. */
  loadEndUser(id: string): SubjectState | null {
    const changed = this.#subjects.get(id);
    if (changed) return changed;
    const rows = this.#sql.exec<{ state: string }>('SELECT state FROM end_users WHERE id = ?', id).toArray();
    return rows[0] ? subjectOf(JSON.parse(rows[0].state) as SubjectState) : null;
  }

  /** Returns the requests without a final record. */
  loadOpen(): Map<string, OpenReservation> {
    return this.#open.all();
  }

  loadIsolates(): Map<string, IsolateState> {
    return this.#isolates.all();
  }

  /**
   * The state of an isolate has changed; null = it is gone.
   * @param isDue to be stored in this call's commit, else in the next one
   */
  saveIsolate(id: string, state: IsolateState | null, isDue: boolean): void {
    this.#waiting.set(id, state);
    this.#isDue ||= isDue;
  }

  /** Whether the state of an isolate must be stored in this call's commit. */
  get isDue(): boolean {
    return this.#isDue;
  }

  /** Stores all changes in one row. */
  commit({ subjects, open, records }: Changes): void {
    const entry = {
      subjects: Object.fromEntries(subjects),
      open: Object.fromEntries(open),
      isolates: Object.fromEntries(this.#waiting),
      records,
    };
    for (const [id, state] of subjects) this.#subjects.set(id, state);
    this.#isolates.change(this.#waiting);
    this.#waiting.clear();
    this.#isDue = false;
    this.#open.change(open);
    this.#records.push(...records);
    if (this.#journal.add(entry)) this.checkpoint();
  }

  /** Writes all changes to their tables. */
  checkpoint(): void {
    this.#saveSubjects();
    this.#isolates.write();
    this.#open.write();
    const last = this.lastRecord;
    const at = this.#requestsAt();
    this.#journal.checkpoint(last);
    this.#ledger.add(this.#records, this.#journal.number, at, last);
    this.#records = [];
    this.#stored = last;
  }

  #saveSubjects(): void {
    const all = [...this.#subjects];
    this.#subjects.clear();
    for (const batch of batches(all.filter(([id]) => !isEndUser(id)))) {
      const sql = 'INSERT OR REPLACE INTO subjects (id, state) SELECT key, value FROM json_each(?)';
      this.#sql.exec(sql, JSON.stringify(Object.fromEntries(batch)));
    }
    for (const batch of batches(all.filter(([id]) => isEndUser(id)))) {
      const rows = batch.map(([id, state]) => [id, state.month.at(-1)?.[0] ?? 0, state]);
      this.#sql.exec(SAVE_END_USERS, JSON.stringify(rows));
    }
  }

  /**
   * Deletes the counters of these keys and those of end users idle for a month, the longest window. To be
   * called after a checkpoint.
   */
  dropSubjects(keys: readonly string[], now: number): void {
    for (const batch of batches(keys)) {
      const sql = 'DELETE FROM subjects WHERE id IN (SELECT value FROM json_each(?))';
      this.#sql.exec(sql, JSON.stringify(batch));
    }
    this.#sql.exec('DELETE FROM end_users WHERE month < ?', momentOf(now).month - 1);
  }
}
