import { joinedBytes } from '@continuo/shared/framing.ts';
import { hasTable, requireFormat } from '@continuo/shared/stored-format.ts';

const FORMAT = 1;
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS batch (only INTEGER PRIMARY KEY CHECK (only = 0), state TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS lines (
    number INTEGER PRIMARY KEY, custom_id TEXT UNIQUE, beginning TEXT NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX IF NOT EXISTS waiting ON lines (beginning, number) WHERE state = 'waiting';
  CREATE TABLE IF NOT EXISTS pieces (
    line INTEGER, part INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (line, part)
  ) WITHOUT ROWID;
`;

/** A SQLite value holds at most 2 MB. */
const PIECE_BYTES = 1_000_000;

/** The file that has a line's record. */
export type ResultFile = 'output' | 'error';

export interface WaitingLine {
  readonly number: number;
  readonly customId: string;
  readonly attempts: number;
  readonly body: Uint8Array;
}

type Numbers = Pick<ReadonlySet<number>, 'has'>;
type LineCounts = Record<'waiting' | ResultFile, number>;
type Place = { readonly beginning: string; readonly number: number };
type WaitingRow = Place & { readonly custom_id: string; readonly attempts: number };
type PieceRow = { readonly line: number; readonly part: number; readonly bytes: ArrayBuffer };

/** Before all lines. */
const START: Place = { beginning: '', number: 0 };

const encoder = new TextEncoder();

/**
 * The lines of a batch in its object's database. The pieces of a line that waits are its request, of all
 * others its record.
 */
export class BatchLines {
  readonly #sql: SqlStorage;
  #cursor: Place = START;
  #counts: LineCounts | null = null;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** Null if there is no batch. Creates no tables, so a request for an unknown batch stores nothing. */
  load(): string | null {
    if (!hasTable(this.#sql, 'batch')) return null;
    requireFormat(this.#sql, FORMAT);
    return this.#sql.exec<{ state: string }>('SELECT state FROM batch').toArray()[0]?.state ?? null;
  }

  save(state: string): void {
    requireFormat(this.#sql, FORMAT);
    this.#sql.exec(SCHEMA);
    this.#sql.exec('INSERT OR REPLACE INTO batch (only, state) VALUES (0, ?)', state);
  }

  clear(): void {
    for (const table of ['lines', 'pieces']) this.#sql.exec(`DELETE FROM ${table}`);
    this.#counts = null;
  }

  /** Returns the number of the line with this id; null if there is none. */
  lineOf(customId: string): number | null {
    const sql = 'SELECT number FROM lines WHERE custom_id = ?';
    return this.#sql.exec<{ number: number }>(sql, customId).toArray()[0]?.number ?? null;
  }

  addRequest(number: number, customId: string, beginning: string, body: string): void {
    const sql = "INSERT INTO lines (number, custom_id, beginning, state) VALUES (?, ?, ?, 'waiting')";
    this.#sql.exec(sql, number, customId, beginning);
    this.#counts = null;
    this.#put(number, body);
  }

  /** Adds a line that cannot run. */
  addFault(number: number, customId: string | null, record: string): void {
    const sql = "INSERT INTO lines (number, custom_id, beginning, state) VALUES (?, ?, '', 'error')";
    this.#sql.exec(sql, number, customId);
    this.#counts = null;
    this.#put(number, record);
  }

  /** Replaces the request of a waiting line by its record. */
  finish(number: number, file: ResultFile, record: string): void {
    const counts = this.counts();
    this.#sql.exec('UPDATE lines SET state = ? WHERE number = ?', file, number);
    this.#sql.exec('DELETE FROM pieces WHERE line = ?', number);
    this.#put(number, record);
    this.#counts = { ...counts, waiting: counts.waiting - 1, [file]: counts[file] + 1 };
  }

  countAttempt(number: number): void {
    this.#sql.exec('UPDATE lines SET attempts = attempts + 1 WHERE number = ?', number);
  }

  counts(): Readonly<LineCounts> {
    if (this.#counts !== null) return this.#counts;
    const sql = 'SELECT state, COUNT(*) AS count FROM lines GROUP BY state';
    const rows = this.#sql.exec<{ state: string; count: number }>(sql).toArray();
    const count = (state: string) => rows.find((row) => row.state === state)?.count ?? 0;
    return (this.#counts = { waiting: count('waiting'), output: count('output'), error: count('error') });
  }

  /** Returns the next waiting line that does not run: lines with the same beginning one after the other. */
  next(running: Numbers): WaitingLine | null {
    const row = this.#after(this.#cursor, running) ?? this.#after(START, running);
    if (row === null) return null;
    this.#cursor = row;
    const { number, custom_id: customId, attempts } = row;
    const sql = 'SELECT line, part, bytes FROM pieces WHERE line = ? ORDER BY part';
    const pieces = this.#sql.exec<PieceRow>(sql, number).toArray();
    return {
      number,
      customId,
      attempts,
      body: joinedBytes(pieces.map(({ bytes }) => new Uint8Array(bytes))),
    };
  }

  #after({ beginning, number }: Place, running: Numbers): WaitingRow | null {
    const sql = `SELECT number, custom_id, beginning, attempts FROM lines
      WHERE state = 'waiting' AND (beginning, number) > (?, ?) ORDER BY beginning, number`;
    for (const row of this.#sql.exec<WaitingRow>(sql, beginning, number)) {
      if (!running.has(row.number)) return row;
    }
    return null;
  }

  /** Returns some waiting lines, for records that replace their requests. */
  waiting(limit: number): { readonly number: number; readonly custom_id: string }[] {
    const sql = "SELECT number, custom_id FROM lines WHERE state = 'waiting' ORDER BY number LIMIT ?";
    return this.#sql.exec<{ number: number; custom_id: string }>(sql, limit).toArray();
  }

  size(file: ResultFile): number {
    const sql = `SELECT COALESCE(SUM(LENGTH(bytes)), 0) AS size FROM pieces JOIN lines ON number = line
      WHERE state = ?`;
    return this.#sql.exec<{ size: number }>(sql, file).one().size;
  }

  /** Yields a result file: the records in the order of the input. */
  *contentOf(file: ResultFile): Generator<Uint8Array> {
    const sql = `SELECT line, part, bytes FROM pieces JOIN lines ON number = line
      WHERE state = ? AND (line, part) > (?, ?) ORDER BY line, part LIMIT 1`;
    let place = { line: 0, part: 0 };
    for (;;) {
      const [row] = this.#sql.exec<PieceRow>(sql, file, place.line, place.part).toArray();
      if (row === undefined) return;
      place = row;
      yield new Uint8Array(row.bytes);
    }
  }

  #put(line: number, text: string): void {
    const bytes = encoder.encode(text);
    for (let part = 0; part * PIECE_BYTES < bytes.length; part += 1) {
      const piece = bytes.slice(part * PIECE_BYTES, (part + 1) * PIECE_BYTES);
      this.#sql.exec('INSERT INTO pieces (line, part, bytes) VALUES (?, ?, ?)', line, part, piece.buffer);
    }
  }
}
