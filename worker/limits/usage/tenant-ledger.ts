import type { Positions } from './event-queue.ts';
import { RequestRecords } from './request-records.ts';
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

/** `news` lists what the summary of all tenants does not have yet. */
const SCHEMA = `
  ${SUM_TABLES.map(
    (table) => `
  CREATE TABLE IF NOT EXISTS ${table} (
    ${textColumns(table)}, ${SUM_COLUMNS}, PRIMARY KEY (${TABLES[table].join(', ')})
  ) WITHOUT ROWID;`,
  ).join('')}
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

/** Returns the records that share the values of these columns. A call may end many: no date is formatted. */
function sharing(
  records: readonly UsageRecord[],
  columns: readonly (typeof TABLES)['user_sums'][number][],
): Iterable<[UsageRecord, ...UsageRecord[]]> {
  const rows = Map.groupBy(records, ({ startedAt, model, keyId, endUser }) => {
    const row = { day: Math.floor(startedAt / DAY_MS), model, key_id: keyId, end_user: endUser };
    return columns.map((name) => row[name]).join('\n');
  });
  return rows.values() as Iterable<[UsageRecord, ...UsageRecord[]]>;
}

/** A row of the summary that has changed: absolute sums; without sums, it is gone. */
export interface SummaryRow {
  readonly day: string;
  readonly model: string;
  /** In the order of ALL_SUMS; null = there are none any more. */
  readonly sums: readonly number[] | null;
}

/** The ledger of one tenant, in its object's database. Changes belong to the commit of the caller. */
export class TenantLedger {
  readonly requests: RequestRecords;
  readonly #sql: SqlStorage;
  /** Number of the last change that is on its way to the summary. */
  #reading = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
    this.requests = new RequestRecords(sql);
  }

  /** Creates the tables that do not exist. */
  create(): void {
    this.#sql.exec(SCHEMA);
    this.requests.create();
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
    this.#addSums(
      'user_sums',
      records.filter(({ endUser }) => (endUser ?? null) !== null),
    );
    for (const [{ startedAt, model }] of sharing(records, ['day', 'model']))
      this.#addNews(dayName(startedAt), model, number);
    if (requestsAt !== null) this.requests.add(records, requestsAt, last);
  }

  #addSums(table: SumTable, records: readonly UsageRecord[]): void {
    const columns = TABLES[table];
    for (const all of sharing(records, columns)) {
      const { startedAt, model, keyId, endUser } = all[0];
      const row = { day: dayName(startedAt), model, key_id: keyId, end_user: endUser ?? '' };
      this.addRow(table, [...columns.map((name) => row[name]), ...countersOf(all)]);
    }
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

  /** Returns the last UTC day on which each of these keys was used; a key without use is missing. */
  lastUses(keyIds: readonly string[]): [keyId: string, day: string][] {
    const sql = `
      SELECT key_id AS id, MAX(day) AS day FROM sums
      WHERE key_id IN (SELECT value FROM json_each(?)) GROUP BY key_id`;
    const rows = this.#sql.exec<{ id: string; day: string }>(sql, JSON.stringify(keyIds)).toArray();
    return rows.map(({ id, day }) => [id, day]);
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
    this.requests.prune(Number.MAX_SAFE_INTEGER, kept);
    this.#sql.exec('DELETE FROM user_sums');
    if (keepSums) this.#sql.exec(regroup('sums', "substr(day, 1, 8) || '01'", "''", "key_id <> ''"));
    this.#sql.exec(`DELETE FROM sums ${keepSums ? "WHERE key_id <> ''" : ''}`);
    this.announce(number);
  }

  /** Unix milliseconds from which something can be pruned or rolled up; null = nothing is stored. */
  tidyFrom(requestDays: number, usageDays: number): number | null {
    const request = (this.requests.oldest() ?? Infinity) + requestDays * DAY_MS;
    const sql = "SELECT day FROM sums WHERE substr(day, 9) <> '01' ORDER BY day LIMIT 1";
    const [row] = this.#sql.exec<{ day: string }>(sql).toArray();
    const day = row ? Date.parse(row.day) + (usageDays + 1) * DAY_MS : Infinity;
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
