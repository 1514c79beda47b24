import type { Positions } from './event-queue.ts';
import { MonthSums, regroup, type SumsTable } from './month-sums.ts';
import { type Row, Table } from './object-tables.ts';
import { RequestRecords } from './request-records.ts';
import type { UsageRecord } from './usage-record.ts';
import {
  ADD_SUMS,
  ALL_SUMS,
  countersOf,
  DAY_MS,
  dayName,
  monthOf,
  sumsOf,
  totalOf,
  type UsagePage,
  type UsageQuestion,
  usageStatements,
} from './usage-sums.ts';

const ADDED = `DO UPDATE SET ${ADD_SUMS}`;

/** Returns the sums of these records by day, model and key, and by end user if that is wanted. */
function sumsByRow(records: readonly UsageRecord[], byEndUser: boolean): Row<'user_sums'>[] {
  // A call may end many: no date is formatted for each.
  const rows = Map.groupBy(records, ({ startedAt, model, keyId, endUser }) =>
    [Math.floor(startedAt / DAY_MS), model, keyId, byEndUser && endUser].join('\n'),
  );
  return [...rows.values()].map((all) => {
    const { startedAt, model, keyId, endUser } = all[0]!;
    return { day: dayName(startedAt), model, key_id: keyId, end_user: endUser ?? '', ...countersOf(all) };
  });
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
  readonly #sums: Table<'sums'>;
  readonly #userSums: Table<'user_sums'>;
  readonly #months: Readonly<Record<SumsTable, MonthSums>>;
  readonly #news: Table<'news'>;
  /** Number of the last change that is on its way to the summary. */
  #reading = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#sums = new Table(sql, 'sums');
    this.#userSums = new Table(sql, 'user_sums');
    this.#months = { sums: new MonthSums(sql, 'sums'), user_sums: new MonthSums(sql, 'user_sums') };
    this.#news = new Table(sql, 'news');
    this.requests = new RequestRecords(sql);
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
    const sums = sumsByRow(records, false);
    for (const row of sums) this.addSums(row);
    const named = records.filter(({ endUser }) => (endUser ?? null) !== null);
    for (const row of sumsByRow(named, true)) {
      this.#userSums.insert(row, ADDED);
      this.#months.user_sums.forget(row.day);
    }
    const changed = new Map(sums.map((row) => [`${row.day}\n${row.model}`, row]));
    for (const { day, model } of changed.values()) this.#addNews(day, model, number);
    if (requestsAt !== null) this.requests.add(records, requestsAt, last);
  }

  /** Adds to the sums of a day, a model and a key. */
  addSums(row: Row<'sums'>): void {
    this.#sums.insert(row, ADDED);
    this.#months.sums.forget(row.day);
  }

  /** Returns the sums by day, model and key. */
  rows(): Row<'sums'>[] {
    return this.#sums.rows();
  }

  /** Everything is news. */
  announce(number: number): void {
    const rows = this.#sql
      .exec<{ day: string; model: string }>('SELECT DISTINCT day, model FROM sums')
      .toArray();
    for (const { day, model } of rows) this.#addNews(day, model, number);
  }

  #addNews(day: string, model: string, number: number): void {
    // What is on its way to the summary stays news until the next report.
    this.#news.insert(
      { day, model, number },
      `DO UPDATE SET number = excluded.number WHERE number <= ${this.#reading}`,
    );
  }

  /** Returns the sums that a question asks for. @param tenantId the value of the group `tenant` */
  query(question: UsageQuestion, tenantId: string): UsagePage {
    const table = question.groups.includes('user') || question.endUser !== null ? 'user_sums' : 'sums';
    const tenant = `'${tenantId.replaceAll("'", "''")}'`;
    const columns = { day: 'day', tenant, model: 'model', key: 'key_id', user: 'end_user' };
    const { from, to, groups } = question;
    const rowsOf = groups.includes('day') ? table : this.#months[table].rowsBetween(from, to);
    const { page, total } = usageStatements(rowsOf, columns, question);
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
    for (const table of ['sums', 'user_sums'] as const) {
      this.#sql.exec(regroup(table, table, 'key_id', old), before);
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
    for (const months of Object.values(this.#months)) months.clear();
    if (keepSums) this.#sql.exec(regroup('sums', 'sums', "''", "key_id <> ''"));
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
    return this.#news.rows('LIMIT 1').length > 0;
  }

  /** Returns what the summary needs. @param number of the last change; later ones stay news */
  news(number: number): SummaryRow[] {
    this.#reading = number;
    const sql = `SELECT ${sumsOf(ALL_SUMS)} FROM sums WHERE day = ? AND model = ?`;
    return this.#news.rows().map(({ day, model }) => {
      const sums = this.#sql.exec<Record<string, number>>(sql, day, model).one();
      return { day, model, sums: sums.requests === 0 ? null : ALL_SUMS.map((name) => sums[name]!) };
    });
  }

  /** The summary has all news up to this number. */
  confirm(number: number): void {
    this.#news.delete('number <= ?', number);
  }
}
