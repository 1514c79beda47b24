import type { JournalEntry, NumberedEntry } from './exchange.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal (sequence INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS region (one INTEGER PRIMARY KEY, tenant TEXT NOT NULL, exchanges INTEGER NOT NULL);
`;

/** What a region must not forget: its decisions until home has read them. Written before the answer leaves. */
export class RegionJournal {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
  }

  /** Whose region this is; null before its first request. */
  tenant(): string | null {
    return this.#sql.exec<{ tenant: string }>('SELECT tenant FROM region').toArray()[0]?.tenant ?? null;
  }

  belongTo(tenant: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO region (one, tenant, exchanges) VALUES (1, ?, 0)', tenant);
  }

  append(entry: JournalEntry): void {
    this.#sql.exec('INSERT INTO journal (entry) VALUES (?)', JSON.stringify(entry));
  }

  /** All that home is not known to have read. */
  entries(): NumberedEntry[] {
    return this.#sql
      .exec<{ sequence: number; entry: string }>('SELECT sequence, entry FROM journal ORDER BY sequence')
      .toArray()
      .map(({ sequence, entry }) => ({ sequence, entry: JSON.parse(entry) as JournalEntry }));
  }

  isEmpty(): boolean {
    return this.#sql.exec('SELECT 1 FROM journal LIMIT 1').toArray().length === 0;
  }

  dropTo(sequence: number): void {
    this.#sql.exec('DELETE FROM journal WHERE sequence <= ?', sequence);
  }

  /** The number of the next exchange. */
  nextExchange(): number {
    return this.#sql
      .exec<{ exchanges: number }>('UPDATE region SET exchanges = exchanges + 1 RETURNING exchanges')
      .one().exchanges;
  }
}
