import { hasTable } from '@continuo/shared/stored-format.ts';
import { Table } from '../usage/object-tables.ts';
import { StoredValues } from './stored-values.ts';

/** Values per row. */
const PER_ROW = 64;

interface Options<Value> {
  readonly table: 'request_rows' | 'isolate_rows';
  /** Releases up to 0.2.0 stored each value in a row of its own: this table, and the column of the value. */
  readonly older: readonly [table: string, column: string];
  /** Unix milliseconds at which something is to be done for a value; Infinity = never. */
  readonly dueAt: (value: Value) => number;
}

/**
 * Values of which many share a row, as JSON: open requests and isolates. Many leave before the next
 * checkpoint, and the others together cost few written rows.
 */
export class PackedValues<Value> extends StoredValues<Value> {
  readonly #sql: SqlStorage;
  readonly #table: Table<Options<Value>['table']>;
  readonly #options: Options<Value>;
  /** The row of each stored value. */
  readonly #rowOf = new Map<string, number>();
  readonly #rows = new Map<number, Set<string>>();
  #lastRow = 0;
  #firstDue = Number.POSITIVE_INFINITY;

  constructor(sql: SqlStorage, options: Options<Value>) {
    super();
    this.#sql = sql;
    this.#options = options;
    const { table, older } = options;
    this.#table = new Table(sql, table);
    for (const { row, entries } of this.#table.rows())
      for (const [id, value] of Object.entries(JSON.parse(entries) as Record<string, Value>)) {
        this.values.set(id, value);
        this.#put(id, row);
      }
    this.#takeOver(...older);
    this.nextDue();
  }

  #takeOver(table: string, column: string): void {
    if (!hasTable(this.#sql, table)) return;
    const rows = this.#sql.exec<{ id: string; value: string }>(`SELECT id, ${column} AS value FROM ${table}`);
    for (const { id, value } of rows.toArray()) this.set(id, JSON.parse(value) as Value);
    this.takeNews();
    this.write();
    this.#sql.exec(`DROP TABLE ${table}`);
  }

  override set(id: string, value: Value): void {
    super.set(id, value);
    this.#firstDue = Math.min(this.#firstDue, this.#options.dueAt(value));
  }

  /** Unix milliseconds before which nothing is due; maybe too early. Saves a look at all values. */
  get firstDue(): number {
    return this.#firstDue;
  }

  /** Returns Unix milliseconds at which the first value is due; Infinity = none is. */
  nextDue(): number {
    this.#firstDue = Number.POSITIVE_INFINITY;
    for (const value of this.values.values())
      this.#firstDue = Math.min(this.#firstDue, this.#options.dueAt(value));
    return this.#firstDue;
  }

  protected override isInTable(id: string): boolean {
    return this.#rowOf.has(id);
  }

  override write(): void {
    const rows = new Set([...this.unwritten].flatMap((id) => this.#place(id) ?? []));
    this.unwritten.clear();
    for (const row of rows) {
      const ids = [...this.#rows.get(row)!];
      if (ids.length === 0) {
        this.#rows.delete(row);
        this.#table.delete('row = ?', row);
        continue;
      }
      const entries = Object.fromEntries(ids.map((id) => [id, this.values.get(id)]));
      this.#table.put({ row, entries: JSON.stringify(entries) });
    }
  }

  /** Returns the row of a value, after it was added to it or removed from it; null if it needs none. */
  #place(id: string): number | null {
    const row = this.#rowOf.get(id);
    if (row === undefined && !this.values.has(id)) return null;
    if (row === undefined) {
      if ((this.#rows.get(this.#lastRow)?.size ?? PER_ROW) >= PER_ROW) this.#lastRow += 1;
      this.#put(id, this.#lastRow);
      return this.#lastRow;
    }
    if (!this.values.has(id)) {
      this.#rowOf.delete(id);
      this.#rows.get(row)!.delete(id);
    }
    return row;
  }

  #put(id: string, row: number): void {
    this.#rowOf.set(id, row);
    const ids = this.#rows.get(row) ?? new Set();
    this.#rows.set(row, ids.add(id));
    this.#lastRow = Math.max(this.#lastRow, row);
  }
}
