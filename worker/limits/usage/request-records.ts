import { fnv1aHex } from '@continuo/shared/fnv1a.ts';
import type { Positions } from './event-queue.ts';
import { Table } from './object-tables.ts';
import { arrivalOf, keptName, nameOf } from './reservation-id.ts';
import { recordOf, type StoredRecord, storedRecord, type UsageRecord } from './usage-record.ts';

/** A value of a table may have 2 MB. */
const ROW_RECORDS = 1_000;
/** A request is stored by then after its arrival, with very few exceptions. */
const STORED_WITHIN_MS = 2 * 3_600_000;

/** A row has no number of these ranges, the first of which are exclusive. */
const NOT_KEPT = `NOT EXISTS (
  SELECT 1 FROM json_each(?) AS kept
  WHERE last > kept.value->>0 AND last - json_array_length(records) < kept.value->>1)`;

/** A record with its place among all of the object, in the order of their ends. */
export interface NumberedRecord {
  readonly number: number;
  readonly record: UsageRecord;
}

/** The records of a tenant's single requests, in its object's database. */
export class RequestRecords {
  readonly #sql: SqlStorage;
  readonly #table: Table<'requests'>;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#table = new Table(sql, 'requests');
  }

  /**
   * @param at Unix milliseconds of their ends
   * @param last number of the last one; null = they have none
   */
  add(records: readonly UsageRecord[], at: number, last: number | null = null): void {
    for (let from = 0, id = at; from < records.length; from += ROW_RECORDS) {
      const part = records.slice(from, from + ROW_RECORDS);
      const row = {
        hashes: part.map(({ requestId }) => fnv1aHex(nameOf(requestId))).join(' '),
        records: JSON.stringify(part.map(storedRecord)),
        last: last && last - records.length + from + part.length,
      };
      while (!this.#table.insert({ id, ...row }, 'DO NOTHING')) id += 1;
    }
  }

  /** Returns the record of a request, the last one of several with this name; null if there is none. */
  find(name: string): UsageRecord | null {
    const arrival = arrivalOf(name);
    const range = arrival === null ? null : ([arrival, arrival + STORED_WITHIN_MS] as const);
    return (range && this.#findIn(name, ...range)) ?? this.#findIn(name, 0, Number.MAX_SAFE_INTEGER);
  }

  #findIn(name: string, from: number, to: number): UsageRecord | null {
    const sql = `
      SELECT id FROM requests WHERE id BETWEEN ? AND ? AND instr(hashes, ?) > 0 ORDER BY id DESC`;
    for (const { id } of this.#sql.exec<{ id: number }>(sql, from, to, fnv1aHex(keptName(name))).toArray()) {
      const [row] = this.#table.rows('WHERE id = ?', id);
      const record = recordIn(recordsIn(row!.records), name);
      if (record !== null) return record;
    }
    return null;
  }

  /** Returns the oldest records after a number. */
  after(number: number, limit: number): NumberedRecord[] {
    const records: NumberedRecord[] = [];
    while (records.length < limit) {
      const after = records.at(-1)?.number ?? number;
      const [row] = this.#table.rows('WHERE last > ? ORDER BY last LIMIT 1', after);
      if (row === undefined) break;
      records.push(...numbered(recordsIn(row.records), row.last!, after));
    }
    return records.slice(0, limit);
  }

  /** Returns the newest records before a number, the last one first. Those of older releases have none. */
  before(number: number, limit: number): NumberedRecord[] {
    const records: NumberedRecord[] = [];
    const rowWith = (where: string, bound: number) =>
      this.#table.rows(`WHERE last ${where} LIMIT 1`, bound)[0];
    // The first row may begin before the number and end behind it.
    let row = rowWith('>= ? ORDER BY last', number) ?? rowWith('< ? ORDER BY last DESC', number);
    while (row !== undefined && records.length < limit) {
      const all = numbered(recordsIn(row.records), row.last!, 0);
      records.push(...all.filter((each) => each.number < number).reverse());
      row = rowWith('< ? ORDER BY last DESC', Math.min(number, row.last! - all.length + 1));
    }
    return records.slice(0, limit);
  }

  /** Unix milliseconds of the oldest row; null = there is none. */
  oldest(): number | null {
    return this.#sql.exec<{ id: number | null }>('SELECT MIN(id) AS id FROM requests').one().id;
  }

  /** Deletes what was stored before this time, but not these records. */
  prune(before: number, kept: readonly Positions[]): void {
    this.#table.delete(`id < ? AND ${NOT_KEPT}`, before, JSON.stringify(kept));
  }

  /**
   * Deletes the oldest records while the database has more bytes, also those that billing does not have: a
   * full object could end no request.
   */
  shrinkTo(bytes: number): void {
    const oldest = 'id IN (SELECT id FROM requests ORDER BY id LIMIT 100)';
    while (this.#sql.databaseSize > bytes && this.#table.delete(oldest)) {}
  }
}

const recordsIn = (text: string): UsageRecord[] => (JSON.parse(text) as StoredRecord[]).map(recordOf);

/** Returns the records after a number, of which the last has the number `last`. */
export const numbered = (records: readonly UsageRecord[], last: number, after: number): NumberedRecord[] =>
  records
    .map((record, index) => ({ number: last - records.length + 1 + index, record }))
    .filter(({ number }) => number > after);

/** Returns the last record with a caller's name. */
export const recordIn = (records: readonly UsageRecord[], name: string): UsageRecord | null =>
  records.findLast(({ requestId }) => nameOf(requestId) === keptName(name)) ?? null;
