import type { Positions } from './delivery-cursor.ts';
import { arrivalOf, keptName, nameOf } from './reservation-id.ts';
import type { UsageRecord } from './usage-record.ts';
import {
  ADD_SUMS,
  ALL_SUMS,
  countersOf,
  DAY_MS,
  dayName,
  monthOf,
  SUM_COLUMNS,
  sumsOf,
  totalOf,
  type UsagePage,
  type UsageQuestion,
  usageStatements,
} from './usage-sums.ts';

/** The tables of sums, with the columns that name a row. The second has only requests with an end user. */
const TABLES = {
  sums: ['day', 'model', 'key_id'],
  user_sums: ['day', 'model', 'key_id', 'end_user'],
} as const;
export type SumTable = keyof typeof TABLES;
const SUM_TABLES = Object.keys(TABLES) as SumTable[];

const textColumns = (table: SumTable): string =>
  TABLES[table].map((name) => `${name} TEXT NOT NULL`).join(', ');

/**
 * `requests` has one row for all requests of a checkpoint. Its id is their time, so that a request is found
 * by its arrival. `last` is the number of its last record; null = an older release has ended them. `news`
 * lists what the summary of all tenants does not have yet.
 */
const SCHEMA = `
  ${SUM_TABLES.map(
    (table) => `
  CREATE TABLE IF NOT EXISTS ${table} (
    ${textColumns(table)}, ${SUM_COLUMNS}, PRIMARY KEY (${TABLES[table].join(', ')})
  ) WITHOUT ROWID;`,
  ).join('')}
  CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY, hashes TEXT NOT NULL, records TEXT NOT NULL, last INTEGER
  );
  CREATE TABLE IF NOT EXISTS news (
    day TEXT NOT NULL, model TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (day, model)
  ) WITHOUT ROWID;`;

const upsert = (table: SumTable): string => {
  const columns = [...TABLES[table], ...ALL_SUMS];
  return `
    INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
    ON CONFLICT (${TABLES[table].join(', ')}) DO UPDATE SET ${ADD_SUMS}`;
};

const ADD_NEWS = `
  INSERT INTO news (day, model, number) VALUES (?1, ?2, ?3)
  ON CONFLICT (day, model) DO UPDATE SET number = ?3 WHERE number <= ?4`;

/** Sums of a table by other columns than its own. */
const regroup = (table: SumTable, day: string, key: string, where: string): string => {
  const rest = TABLES[table].slice(3).join('');
  const columns = `day, model, key_id${rest && `, ${rest}`}`;
  return `
    INSERT INTO ${table} (${columns}, ${ALL_SUMS.join(', ')})
    SELECT ${day}, model, ${key}${rest && `, ${rest}`}, ${ALL_SUMS.map((name) => `SUM(${name})`).join(', ')}
    FROM ${table} WHERE ${where} GROUP BY 1, 2, 3${rest && ', 4'}
    ON CONFLICT (${TABLES[table].join(', ')}) DO UPDATE SET ${ADD_SUMS}`;
};

/** FNV-1a, as 8 hexadecimal digits: short, and without a promise as in WebCrypto. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

/** A value of a table may have 2 MB. */
const ROW_RECORDS = 1_000;
/** A request is stored by then after its arrival, with very few exceptions. */
const STORED_WITHIN_MS = 2 * 3_600_000;

/** A record with its place among all of the object, in the order of their ends. */
export interface NumberedRecord {
  readonly number: number;
  readonly record: UsageRecord;
}

/** A row has no number of these ranges, the first of which are exclusive. */
const NOT_KEPT = `NOT EXISTS (
  SELECT 1 FROM json_each(?) AS kept
  WHERE last > kept.value->>0 AND last - json_array_length(records) < kept.value->>1)`;

/** A row of the summary that has changed: absolute sums; without sums, it is gone. */
export interface SummaryRow {
  readonly day: string;
  readonly model: string;
  /** In the order of ALL_SUMS; null = there are none any more. */
  readonly sums: readonly number[] | null;
}

/** The ledger of one tenant, in its object's database. Changes belong to the commit of the caller. */
export class TenantLedger {
  readonly #sql: SqlStorage;
  /** Number of the last change that is on its way to the summary. */
  #reading = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.create();
  }

  /** Creates the tables that do not exist. */
  create(): void {
    this.#sql.exec(SCHEMA);
  }

  /**
   * Adds ended requests.
   * @param number increases with every call
   * @param requestsAt Unix milliseconds under which the single requests are stored; null = only their sums
   * @param last number of the last record; null = they have none
   */
  add(
    records: readonly UsageRecord[],
    number: number,
    requestsAt: number | null,
    last: number | null = null,
  ): void {
    this.#addSums('sums', records);
    const named = records.filter(({ endUser }) => (endUser ?? null) !== null);
    this.#addSums('user_sums', named);
    const rows = records.map(({ startedAt, model }) => JSON.stringify([dayName(startedAt), model]));
    for (const row of new Set(rows)) this.#addNews(...(JSON.parse(row) as [string, string]), number);
    if (requestsAt !== null) this.addRequests(records, requestsAt, last);
  }

  #addSums(table: SumTable, records: readonly UsageRecord[]): void {
    const rows = Map.groupBy(records, ({ startedAt, model, keyId, endUser }) => {
      const row = { day: dayName(startedAt), model, key_id: keyId, end_user: endUser };
      return JSON.stringify(TABLES[table].map((column) => row[column]));
    });
    for (const [row, all] of rows) this.addRow(table, [...(JSON.parse(row) as string[]), ...countersOf(all)]);
  }

  /** Adds a row of sums: its names, then its counters. */
  addRow(table: SumTable, values: readonly (string | number)[]): void {
    this.#sql.exec(upsert(table), ...values);
  }

  /** Returns the sums by day, model and key as rows to add. */
  rows(): (string | number)[][] {
    const names = [...TABLES.sums, ...ALL_SUMS].join(', ');
    return [...this.#sql.exec(`SELECT ${names} FROM sums`).raw<(string | number)[]>()];
  }

  /** Everything is news. */
  announce(number: number): void {
    const rows = this.#sql
      .exec<{ day: string; model: string }>('SELECT DISTINCT day, model FROM sums')
      .toArray();
    for (const { day, model } of rows) this.#addNews(day, model, number);
  }

  #addNews(day: string, model: string, number: number): void {
    this.#sql.exec(ADD_NEWS, day, model, number, this.#reading);
  }

  /**
   * Stores single requests.
   * @param at Unix milliseconds of their ends
   * @param last number of the last one; null = they have none
   */
  addRequests(records: readonly UsageRecord[], at: number, last: number | null = null): void {
    for (let from = 0, id = at; from < records.length; from += ROW_RECORDS) {
      const part = records.slice(from, from + ROW_RECORDS);
      const number = last && last - records.length + from + part.length;
      const hashes = part.map(({ requestId }) => shortHash(nameOf(requestId))).join(' ');
      const sql = `
        INSERT INTO requests (id, hashes, records, last) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`;
      const text = JSON.stringify(part);
      while (this.#sql.exec(sql, id, hashes, text, number).rowsWritten === 0) id += 1;
    }
  }

  /** Returns the sums that a question asks for. @param tenantId the value of the group `tenant` */
  query(question: UsageQuestion, tenantId: string): UsagePage {
    const table = question.groups.includes('user') || question.endUser !== null ? 'user_sums' : 'sums';
    const tenant = `'${tenantId.replaceAll("'", "''")}'`;
    const columns = { day: 'day', tenant, model: 'model', key: 'key_id', user: 'end_user' };
    const { page, total } = usageStatements(table, columns, question);
    const rows = this.#sql.exec(page.sql, ...page.values).toArray() as unknown as UsagePage['rows'];
    // A page with all groups saves the second scan.
    if (question.after.length === 0 && rows.length < question.limit) return { rows, total: totalOf(rows) };
    return { rows, total: this.#sql.exec<Record<string, number>>(total.sql, ...total.values).one() };
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
    for (const { id } of this.#sql.exec<{ id: number }>(sql, from, to, shortHash(keptName(name))).toArray()) {
      const record = recordIn(this.#records(id), name);
      if (record !== null) return record;
    }
    return null;
  }

  #records(id: number): UsageRecord[] {
    const { records } = this.#sql
      .exec<{ records: string }>('SELECT records FROM requests WHERE id = ?', id)
      .one();
    return JSON.parse(records) as UsageRecord[];
  }

  /** Returns the last UTC day on which each of these keys was used; a key without use is missing. */
  lastUses(keyIds: readonly string[]): [keyId: string, day: string][] {
    const sql = `
      SELECT key_id AS id, MAX(day) AS day FROM sums
      WHERE key_id IN (SELECT value FROM json_each(?)) GROUP BY key_id`;
    const rows = this.#sql.exec<{ id: string; day: string }>(sql, JSON.stringify(keyIds)).toArray();
    return rows.map(({ id, day }) => [id, day]);
  }

  /** Returns the oldest records after a number. */
  recordsAfter(number: number, limit: number): NumberedRecord[] {
    const found: NumberedRecord[] = [];
    const sql = 'SELECT last, records FROM requests WHERE last > ? ORDER BY last LIMIT 1';
    while (found.length < limit) {
      const after = found.at(-1)?.number ?? number;
      const [row] = this.#sql.exec<{ last: number; records: string }>(sql, after).toArray();
      if (row === undefined) break;
      found.push(...numbered(JSON.parse(row.records) as UsageRecord[], row.last, after));
    }
    return found.slice(0, limit);
  }

  /** Deletes single requests that were stored before this time, but not these. Their sums stay. */
  prune(before: number, kept: readonly Positions[]): void {
    this.#sql.exec(`DELETE FROM requests WHERE id < ? AND ${NOT_KEPT}`, before, JSON.stringify(kept));
  }

  /**
   * Deletes the oldest single requests while the database has more bytes, also those that billing does not
   * have: a full object could end no request. Sums stay.
   */
  shrinkTo(bytes: number): void {
    while (this.#sql.databaseSize > bytes) {
      const sql = 'DELETE FROM requests WHERE id IN (SELECT id FROM requests ORDER BY id LIMIT 100)';
      if (this.#sql.exec(sql).rowsWritten === 0) return;
    }
  }

  /** Adds days before this one to the first day of their month, so that the sums of a month stay exact. */
  rollUp(before: string, number: number): void {
    const old = "day < ? AND substr(day, 9) <> '01'";
    const moved = this.#sql
      .exec<{ day: string; model: string }>(`SELECT DISTINCT day, model FROM sums WHERE ${old}`, before)
      .toArray();
    if (moved.length === 0) return;
    for (const table of SUM_TABLES) {
      this.#sql.exec(regroup(table, "substr(day, 1, 8) || '01'", 'key_id', old), before);
      this.#sql.exec(`DELETE FROM ${table} WHERE ${old}`, before);
    }
    for (const { day, model } of moved)
      for (const changed of [day, monthOf(day)]) this.#addNews(changed, model, number);
  }

  /**
   * Erases all but these single requests. With `keepSums`, one row per month and model stays, without keys
   * and end users.
   */
  erase(keepSums: boolean, number: number, kept: readonly Positions[]): void {
    this.announce(number);
    this.prune(Number.MAX_SAFE_INTEGER, kept);
    this.#sql.exec('DELETE FROM user_sums');
    if (keepSums) this.#sql.exec(regroup('sums', "substr(day, 1, 8) || '01'", "''", "key_id <> ''"));
    this.#sql.exec(`DELETE FROM sums ${keepSums ? "WHERE key_id <> ''" : ''}`);
    this.announce(number);
  }

  /** Unix milliseconds from which something can be pruned or rolled up; null = nothing is stored. */
  tidyFrom(requestDays: number, usageDays: number): number | null {
    const [row] = this.#sql
      .exec<{ request: number | null; day: string | null }>(`
        SELECT (SELECT MIN(id) FROM requests) AS request,
          (SELECT day FROM sums WHERE substr(day, 9) <> '01' ORDER BY day LIMIT 1) AS day`)
      .toArray();
    const request = row?.request == null ? Infinity : row.request + requestDays * DAY_MS;
    const day = row?.day == null ? Infinity : Date.parse(row.day) + (usageDays + 1) * DAY_MS;
    const first = Math.min(request, day);
    return first === Infinity ? null : first;
  }

  get hasNews(): boolean {
    return this.#sql.exec('SELECT 1 FROM news LIMIT 1').toArray().length > 0;
  }

  /** Returns what the summary needs. @param number of the last change; later ones stay news */
  news(number: number): SummaryRow[] {
    this.#reading = number;
    const changed = this.#sql.exec<{ day: string; model: string }>('SELECT day, model FROM news').toArray();
    const sql = `SELECT ${sumsOf(ALL_SUMS)} FROM sums WHERE day = ? AND model = ?`;
    return changed.map(({ day, model }) => {
      const sums = this.#sql.exec<Record<string, number>>(sql, day, model).one();
      return { day, model, sums: sums.requests === 0 ? null : ALL_SUMS.map((name) => sums[name]!) };
    });
  }

  /** The summary has all news up to this number. */
  confirm(number: number): void {
    this.#sql.exec('DELETE FROM news WHERE number <= ?', number);
  }
}

/** Returns the records after a number, of which the last has the number `last`. */
export const numbered = (records: readonly UsageRecord[], last: number, after: number): NumberedRecord[] =>
  records
    .map((record, index) => ({ number: last - records.length + 1 + index, record }))
    .filter(({ number }) => number > after);

/** Returns the last record with a caller's name. */
export const recordIn = (records: readonly UsageRecord[], name: string): UsageRecord | null =>
  records.findLast(({ requestId }) => nameOf(requestId) === keptName(name)) ?? null;
