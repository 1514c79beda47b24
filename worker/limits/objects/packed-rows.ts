import { hasTable } from '@continuo/shared/stored-format.ts';

/** Values per row. */
const PER_ROW = 64;

interface Tables {
  readonly table: string;
  /** Releases up to 0.2.0 stored each value in a row of its own: this table, and the column of the value. */
  readonly older: readonly [table: string, column: string];
}

/**
 * Values by id in the object's database, many in a row, as JSON: open requests and isolates. Many leave
 * before the next checkpoint, and the others together cost few written rows.
 */
export class PackedRows<Value> {
  readonly #sql: SqlStorage;
  readonly #table: string;
  readonly #values = new Map<string, Value>();
  /** The row of each stored value. */
  readonly #rowOf = new Map<string, number>();
  readonly #rows = new Map<number, Set<string>>();
  /** Ids of values that have changed since they were written. */
  readonly #changed = new Set<string>();
  #lastRow = 0;

  constructor(sql: SqlStorage, { table, older }: Tables) {
    this.#sql = sql;
    this.#table = table;
    sql.exec(`CREATE TABLE IF NOT EXISTS ${table} (row INTEGER PRIMARY KEY, entries TEXT NOT NULL)`);
    for (const { row, entries } of sql
      .exec<{ row: number; entries: string }>(`SELECT row, entries FROM ${table}`)
      .toArray())
      for (const [id, value] of Object.entries(JSON.parse(entries) as Record<string, Value>)) {
        this.#values.set(id, value);
        this.#put(id, row);
      }
    this.#takeOver(...older);
  }

  #put(id: string, row: number): void {
    this.#rowOf.set(id, row);
    const ids = this.#rows.get(row) ?? new Set();
    this.#rows.set(row, ids.add(id));
    this.#lastRow = Math.max(this.#lastRow, row);
  }

  #takeOver(table: string, column: string): void {
    if (!hasTable(this.#sql, table)) return;
    const rows = this.#sql.exec<{ id: string; value: string }>(`SELECT id, ${column} AS value FROM ${table}`);
    this.change(rows.toArray().map(({ id, value }) => [id, JSON.parse(value) as Value]));
    this.write();
    this.#sql.exec(`DROP TABLE ${table}`);
  }

  all(): Map<string, Value> {
    return new Map(this.#values);
  }

  /** Takes new values; null = it is gone. */
  change(entries: Iterable<readonly [id: string, value: Value | null]>): void {
    for (const [id, value] of entries) {
      if (value === null) this.#values.delete(id);
      else this.#values.set(id, value);
      if (value !== null || this.#rowOf.has(id)) this.#changed.add(id);
      else this.#changed.delete(id);
    }
  }

  /** Writes the rows that have changed. */
  write(): void {
    const rows = new Set([...this.#changed].map((id) => this.#place(id)));
    this.#changed.clear();
    for (const row of rows) {
      const ids = [...this.#rows.get(row)!];
      if (ids.length === 0) {
        this.#rows.delete(row);
        this.#sql.exec(`DELETE FROM ${this.#table} WHERE row = ?`, row);
        continue;
      }
      const entries = JSON.stringify(Object.fromEntries(ids.map((id) => [id, this.#values.get(id)])));
      const sql = `
        INSERT INTO ${this.#table} (row, entries) VALUES (?1, ?2) ON CONFLICT (row) DO UPDATE SET entries = ?2`;
      this.#sql.exec(sql, row, entries);
    }
  }

  /** Returns the row of a value, after it was added to it or removed from it. */
  #place(id: string): number {
    const row = this.#rowOf.get(id);
    if (row !== undefined) {
      if (!this.#values.has(id)) {
        this.#rowOf.delete(id);
        this.#rows.get(row)!.delete(id);
      }
      return row;
    }
    if ((this.#rows.get(this.#lastRow)?.size ?? PER_ROW) >= PER_ROW) this.#lastRow += 1;
    this.#put(id, this.#lastRow);
    return this.#lastRow;
  }
}
