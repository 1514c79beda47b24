import { hasTable } from '@continuo/shared/stored-format.ts';
import type { OpenReservation } from './open-reservation.ts';

/** Requests per row. */
const PER_ROW = 64;

/**
 * The open requests in the object's database, many in a row: most of them end before the next checkpoint,
 * and the others together cost few written rows.
 */
export class OpenRows {
  readonly #sql: SqlStorage;
  readonly #open = new Map<string, OpenReservation>();
  /** The row of each stored request. */
  readonly #rowOf = new Map<string, number>();
  readonly #rows = new Map<number, Set<string>>();
  /** Requests that have changed since they were written. */
  readonly #changed = new Set<string>();
  #lastRow = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS open_requests (row INTEGER PRIMARY KEY, requests TEXT NOT NULL)');
    for (const { row, requests } of sql
      .exec<{ row: number; requests: string }>('SELECT row, requests FROM open_requests')
      .toArray())
      for (const open of JSON.parse(requests) as OpenReservation[]) this.#put(open, row);
    this.#takeOver();
  }

  #put(open: OpenReservation, row: number): void {
    const { id } = open.reservation;
    this.#open.set(id, open);
    this.#rowOf.set(id, row);
    const ids = this.#rows.get(row) ?? new Set();
    this.#rows.set(row, ids.add(id));
    this.#lastRow = Math.max(this.#lastRow, row);
  }

  /** Releases up to 0.2.0 stored each request in a row of its own. */
  #takeOver(): void {
    if (!hasTable(this.#sql, 'reservations')) return;
    for (const { open } of this.#sql.exec<{ open: string }>('SELECT open FROM reservations').toArray()) {
      const parsed = JSON.parse(open) as OpenReservation;
      this.change([[parsed.reservation.id, parsed]]);
    }
    this.write();
    this.#sql.exec('DROP TABLE reservations');
  }

  all(): Map<string, OpenReservation> {
    return new Map(this.#open);
  }

  /** Takes new values; null = the request has ended. */
  change(open: Iterable<readonly [id: string, value: OpenReservation | null]>): void {
    for (const [id, value] of open) {
      if (value === null) this.#open.delete(id);
      else this.#open.set(id, value);
      if (value !== null || this.#rowOf.has(id)) this.#changed.add(id);
      else this.#changed.delete(id);
    }
  }

  /** Writes the rows that have changed. */
  write(): void {
    const rows = new Set([...this.#changed].map((id) => this.#place(id)));
    this.#changed.clear();
    for (const row of rows) {
      const ids = this.#rows.get(row)!;
      if (ids.size === 0) {
        this.#rows.delete(row);
        this.#sql.exec('DELETE FROM open_requests WHERE row = ?', row);
        continue;
      }
      const requests = JSON.stringify([...ids].map((id) => this.#open.get(id)));
      const sql = `
        INSERT INTO open_requests (row, requests) VALUES (?1, ?2) ON CONFLICT (row) DO UPDATE SET requests = ?2`;
      this.#sql.exec(sql, row, requests);
    }
  }

  /** Returns the row of a request, after it was added to it or removed from it. */
  #place(id: string): number {
    const row = this.#rowOf.get(id);
    if (row !== undefined) {
      if (!this.#open.has(id)) {
        this.#rowOf.delete(id);
        this.#rows.get(row)!.delete(id);
      }
      return row;
    }
    if ((this.#rows.get(this.#lastRow)?.size ?? PER_ROW) >= PER_ROW) this.#lastRow += 1;
    this.#put(this.#open.get(id)!, this.#lastRow);
    return this.#lastRow;
  }
}
