import { ALL_SUMS, type Counters } from './usage-sums.ts';

/**
 * All tables of a tenant's object: what names a row, what a row has (as examples of its values), and when it
 * leaves. An erasure deletes all of it, or all but sums without keys and end users.
 */

type Value = string | number | null;

const COUNTERS = Object.fromEntries(ALL_SUMS.map((name) => [name, 0])) as Counters;

const TABLES = {
  /** What a call has changed. Used again after a checkpoint. */
  journal: { key: ['place'], row: { place: 0, number: 0, entry: '' } },
  /** The last change and the last record that are in the other tables; only one row. */
  checkpoints: { key: ['only'], row: { only: 0, number: 0, records: 0 } },
  /** What the tenant and a key have used. Leaves when no window counts it. */
  subjects: { key: ['id'], row: { id: '', state: '' } },
  /** What an end user has used, and the last month of that. Leaves a month later. */
  end_users: { key: ['id'], row: { id: '', month: 0, state: '' }, index: 'month' },
  /** 64 open requests. They leave when they have ended. */
  request_rows: { key: ['row'], row: { row: 0, entries: '' } },
  /** 64 isolates. They leave after an hour without slices. */
  isolate_rows: { key: ['row'], row: { row: 0, entries: '' } },
  /** What ended requests have used. Days join their month after USAGE_DAYS. */
  sums: { key: ['day', 'model', 'key_id'], row: { day: '', model: '', key_id: '', ...COUNTERS } },
  /** The same of those that name an end user. */
  user_sums: {
    key: ['day', 'model', 'key_id', 'end_user'],
    row: { day: '', model: '', key_id: '', end_user: '', ...COUNTERS },
  },
  /** Sums of months that have ended, under their first day. Leave when one of their days changes. */
  month_sums: { key: ['day', 'model', 'key_id'], row: { day: '', model: '', key_id: '', ...COUNTERS } },
  month_user_sums: {
    key: ['day', 'model', 'key_id', 'end_user'],
    row: { day: '', model: '', key_id: '', end_user: '', ...COUNTERS },
  },
  /** Sums that the summary of all tenants lacks, with the number of their last change. */
  news: { key: ['day', 'model'], row: { day: '', model: '', number: 0 } },
  /**
   * The requests of a checkpoint; the id is its time. `last` is the number of the last one; null = an older
   * release has ended them. Leaves after REQUEST_DAYS, when billing has them.
   */
  requests: { key: ['id'], row: { id: 0, hashes: '', records: '', last: 0 as number | null }, index: 'last' },
  /** How far a receiver of events has got. */
  queues: { key: ['channel'], row: { channel: '', state: '' } },
  /** Without a position: an older release has stored its event to be sent. Leaves after 40 days. */
  alerts: {
    key: ['id'],
    row: { id: '', at: 0, alert: '', position: 0 as number | null, tenant: '' as string | null },
  },
  /** The prepaid balance at its last entry; only one row. */
  balance: { key: ['only'], row: { only: 0, at: 0, credit: 0, spent: 0 } },
  /** A revoked key, or the tenant if it is suspended. A key leaves after a day or two. */
  blocked: { key: ['id'], row: { id: '', at: 0 } },
} satisfies Record<string, Form>;

interface Form {
  readonly key: readonly string[];
  readonly row: Readonly<Record<string, Value>>;
  /** A column that needs an index. */
  readonly index?: string;
}

type TableName = keyof typeof TABLES;
export type Row<Name extends TableName> = Readonly<(typeof TABLES)[Name]['row']>;

/** The columns that name a row. */
export const keyOf = (name: TableName): readonly string[] => TABLES[name].key;

/** One of these tables. */
export class Table<Name extends TableName> {
  readonly #sql: SqlStorage;
  readonly #name: Name;
  readonly #columns: readonly string[];

  /** Creates the table if it does not exist. */
  constructor(sql: SqlStorage, name: Name) {
    this.#sql = sql;
    this.#name = name;
    const { key, row, index }: Form = TABLES[name];
    this.#columns = Object.keys(row);
    const typed = Object.entries(row).map(([column, value]) =>
      typeof value === 'number' ? `${column} INTEGER` : `${column} TEXT`,
    );
    // A number that names a row is its place, which large rows need.
    const isPlace = key.length === 1 && typeof row[key[0]!] === 'number';
    sql.exec(`
      CREATE TABLE IF NOT EXISTS ${name} (${typed.join(', ')}, PRIMARY KEY (${key.join(', ')}))
      ${isPlace ? '' : 'WITHOUT ROWID'}`);
    if (index) sql.exec(`CREATE INDEX IF NOT EXISTS ${name}_by_${index} ON ${name} (${index})`);
  }

  /** Adds a row, or replaces the one with its name. */
  put(row: Row<Name>): void {
    const changes = this.#columns.map((column) => `${column} = excluded.${column}`);
    this.insert(row, `DO UPDATE SET ${changes.join(', ')}`);
  }

  /** Adds a row. @param conflict what happens if its name exists. @returns whether a row was written */
  insert(row: Row<Name>, conflict: string): boolean {
    const values = this.#columns.map((column) => (row as Form['row'])[column]);
    const sql = `
      INSERT INTO ${this.#name} (${this.#columns.join(', ')}) VALUES (${values.map(() => '?').join(', ')})
      ON CONFLICT (${keyOf(this.#name).join(', ')}) ${conflict}`;
    return this.#sql.exec(sql, ...values).rowsWritten > 0;
  }

  /** Returns rows. @param rest of the query, such as its condition */
  rows(rest = '', ...values: readonly Value[]): Row<Name>[] {
    const sql = `SELECT ${this.#columns.join(', ')} FROM ${this.#name} ${rest}`;
    return this.#sql.exec(sql, ...values).toArray() as unknown as Row<Name>[];
  }

  /** Returns whether rows were deleted. */
  delete(condition: string, ...values: readonly Value[]): boolean {
    return this.#sql.exec(`DELETE FROM ${this.#name} WHERE ${condition}`, ...values).rowsWritten > 0;
  }
}
