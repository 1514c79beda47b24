import { keyOf, Table } from './object-tables.ts';
import { ADD_SUMS, ALL_SUMS, DAY_MS, dayName, monthOf } from './usage-sums.ts';

export type SumsTable = 'sums' | 'user_sums';

const later = (day: string, days: number): string => dayName(Date.parse(day) + days * DAY_MS);

const nextMonth = (day: string): string => monthOf(later(monthOf(day), 31));

/** The statement that adds rows of a table to those of a table with the same columns, under other names. */
export const regroup = (
  table: SumsTable,
  into: SumsTable | `month_${SumsTable}`,
  key: string,
  where: string,
): string => {
  const names = keyOf(table);
  const named = ["substr(day, 1, 8) || '01'", 'model', key, ...names.slice(3)];
  return `
    INSERT INTO ${into} (${[...names, ...ALL_SUMS].join(', ')})
    SELECT ${[...named, ...ALL_SUMS.map((name) => `SUM(${name})`)].join(', ')}
    FROM ${table} WHERE ${where} GROUP BY ${names.map((_, index) => index + 1).join(', ')}
    ON CONFLICT (${names.join(', ')}) DO UPDATE SET ${ADD_SUMS}`;
};

/**
 * Sums of the months of a table that have ended. A question about a year reads twelve rows per key and model
 * in place of 365, unless it groups by day. A month is added up when a question first needs it.
 */
export class MonthSums {
  readonly #sql: SqlStorage;
  readonly #table: SumsTable;
  readonly #months: `month_${SumsTable}`;
  /** First days of the months that are stored. */
  readonly #stored: Set<string>;

  constructor(sql: SqlStorage, table: SumsTable) {
    this.#sql = sql;
    this.#table = table;
    this.#months = `month_${table}`;
    new Table(sql, this.#months);
    const stored = sql.exec<{ day: string }>(`SELECT DISTINCT day FROM ${this.#months}`).toArray();
    this.#stored = new Set(stored.map(({ day }) => day));
  }

  /** To be called with every change of a day, in the same commit. */
  forget(day: string): void {
    const month = monthOf(day);
    if (this.#stored.delete(month)) this.#sql.exec(`DELETE FROM ${this.#months} WHERE day = ?`, month);
  }

  /** Forgets all months. */
  clear(): void {
    this.#stored.clear();
    this.#sql.exec(`DELETE FROM ${this.#months}`);
  }

  /** Returns rows with the sums of the table from one day to another, as SQL. Their days differ. */
  rowsBetween(from: string, to: string): string {
    const [first, end] = this.#wholeMonths(from, to);
    if (first >= end) return this.#table;
    for (let month = first; month < end; month = nextMonth(month)) this.#store(month);
    return `(
      SELECT * FROM ${this.#table} WHERE day < '${first}'
      UNION ALL SELECT * FROM ${this.#months} WHERE day >= '${first}' AND day < '${end}'
      UNION ALL SELECT * FROM ${this.#table} WHERE day >= '${end}')`;
  }

  /** Returns the first days of the first month that is asked for whole, and of the one after the last. */
  #wholeMonths(from: string, to: string): readonly [first: string, end: string] {
    const limit = (name: 'MIN' | 'MAX') => `(SELECT ${name}(day) FROM ${this.#table})`;
    const { oldest, newest } = this.#sql
      .exec<{ oldest: string | null; newest: string | null }>(
        `SELECT ${limit('MIN')} AS oldest, ${limit('MAX')} AS newest`,
      )
      .one();
    if (oldest === null || newest === null) return ['', ''];
    const first = from <= monthOf(oldest) ? monthOf(oldest) : nextMonth(later(from, -1));
    // The newest month still changes.
    const end = [monthOf(newest), monthOf(later(to, 1))].toSorted()[0]!;
    return [first, end];
  }

  #store(month: string): void {
    if (this.#stored.has(month)) return;
    this.#sql.exec(
      regroup(this.#table, this.#months, 'key_id', 'day >= ? AND day < ?'),
      month,
      nextMonth(month),
    );
    this.#stored.add(month);
  }
}
