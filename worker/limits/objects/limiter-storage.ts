import { requireFormat } from '@continuo/shared/stored-format.ts';
import type { SubjectState } from '../quota/state.ts';
import { type NumberedRecord, numbered } from '../usage/request-records.ts';
import type { TenantLedger } from '../usage/tenant-ledger.ts';
import { recordOf, type StoredRecord, storedRecord, type UsageRecord } from '../usage/usage-record.ts';
import { type IsolateState, nextEndOf } from './isolate-state.ts';
import { Journal } from './journal.ts';
import { dueAt, type OpenReservation } from './open-reservation.ts';
import { PackedValues } from './packed-values.ts';
import { StoredCounters } from './stored-counters.ts';
import type { News } from './stored-values.ts';

/** Rises with the journal and the ledger: the release before reads neither. */
const FORMAT = 2;

/** A checkpoint with more records would delay the requests that wait for its end. */
const MAX_RECORDS = 1_000;

/** An entry of the journal: what one call has changed. Open requests leave with their records. */
interface Entry {
  readonly subjects: News<SubjectState>;
  readonly open: News<OpenReservation>;
  readonly isolates: News<IsolateState>;
  readonly records: readonly StoredRecord[];
}

/**
 * What a tenant's object keeps: counters, open requests, isolates and the ledger. A call's changes are one
 * row of the journal; a checkpoint writes those of many calls to their tables. The platform's output gate
 * holds each answer until its changes are written, so no counter or record is lost if the object restarts.
 */
export class LimiterStorage {
  readonly counters: StoredCounters;
  /** Requests without a final record. */
  readonly open: PackedValues<OpenReservation>;
  readonly isolates: PackedValues<IsolateState>;
  readonly #journal: Journal<Entry>;
  readonly #ledger: TenantLedger;
  readonly #requestsAt: () => number | null;
  /** Records that are not in the journal yet, and those that are not in the ledger yet. */
  #ended: UsageRecord[] = [];
  #records: UsageRecord[] = [];
  /** Number of the last record in the ledger. */
  #stored: number;

  /**
   * Reads what is stored.
   * @param requestsAt time in Unix milliseconds under which single requests are stored; null = they are not
   * @param stored number of the last record that an older release has ended
   */
  constructor(sql: SqlStorage, ledger: TenantLedger, requestsAt: () => number | null, stored = 0) {
    this.#ledger = ledger;
    this.#requestsAt = requestsAt;
    requireFormat(sql, FORMAT);
    this.#journal = new Journal(sql);
    this.counters = new StoredCounters(sql);
    this.open = new PackedValues(sql, { table: 'request_rows', older: ['reservations', 'open'], dueAt });
    const isolates = { table: 'isolate_rows', older: ['isolates', 'state'], dueAt: nextEndOf } as const;
    this.isolates = new PackedValues(sql, isolates);
    for (const { subjects, open, isolates, records: stored } of this.#journal.entries()) {
      const records = stored.map(recordOf);
      this.counters.restore(subjects);
      this.open.restore([...open, ...records.map(({ requestId }) => [requestId, null] as const)]);
      this.isolates.restore(isolates);
      this.#records.push(...records);
    }
    this.#stored = this.#journal.records ?? stored;
    // The number that an older release has reached is not stored yet.
    if (this.#journal.records === null) this.checkpoint();
  }

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

  /** A request has ended. */
  end(record: UsageRecord): void {
    this.#ended.push(record);
  }

  /** Stores all changes in one row. Returns the records of the requests that have ended. */
  commit(): readonly UsageRecord[] {
    const records = this.#ended;
    const entry = {
      subjects: this.counters.takeNews(),
      open: this.open.takeNews().filter(([, open]) => open !== null),
      isolates: this.isolates.takeNews(),
      records: records.map(storedRecord),
    };
    if (Object.values(entry).every(({ length }) => length === 0)) return [];
    this.#ended = [];
    this.#records.push(...records);
    if (this.#journal.add(entry) || this.#records.length >= MAX_RECORDS) this.checkpoint();
    return records;
  }

  /** Writes all changes that are committed to their tables. */
  checkpoint(): void {
    this.counters.write();
    this.isolates.write();
    this.open.write();
    const last = this.lastRecord;
    const at = this.#requestsAt();
    this.#journal.checkpoint(last);
    this.#ledger.add(this.#records, this.#journal.number, at, last);
    this.#records = [];
    this.#stored = last;
  }
}
