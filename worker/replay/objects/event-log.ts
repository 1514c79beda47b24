import { joinedBytes } from '@continuo/shared/framing.ts';
import { hasTable } from '@continuo/shared/stored-format.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS pieces (
    id INTEGER, part INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (id, part)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS stream (only INTEGER PRIMARY KEY CHECK (only = 0), tenant TEXT NOT NULL, ended INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS headers (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`;

/** A SQLite value holds at most 2 MB. Larger events are stored in pieces of this size. */
const PIECE_BYTES = 65_536;
/** Events are written after so much time or so many bytes: each write waits for the disk. */
const UNSAVED = { ms: 1_000, bytes: 65_536 };
/** More events than a stream sends between two writes. */
const MOST_LOST = 1_000_000;
/** Bytes per read. Readers may be slow and many, so each of them holds only this much. */
const MAX_READ_BYTES = 65_536;

const encoder = new TextEncoder();

/** How far a reader has read: a piece of the event with this number. */
type LogPosition = { readonly id: number; readonly part: number };

/** A piece of an event as it is sent. */
type Piece = LogPosition & { readonly bytes: ArrayBuffer };

interface LogChunk {
  readonly bytes: Uint8Array;
  readonly position: LogPosition;
  /** No pieces follow so far. */
  readonly isLast: boolean;
}

/** The position after the last piece of an event. */
export const endOf = (id: number): LogPosition => ({ id, part: Number.MAX_SAFE_INTEGER });

/** The numbered events of one stream in its object's database. The last ones are only in memory. */
export class EventLog {
  readonly #sql: SqlStorage;
  readonly #now: () => number;
  /** Number of the last event; null = not known. */
  #lastId: number | null = null;
  #unsaved: Piece[] = [];
  #unsavedBytes = 0;
  #savedAt = 0;

  /** @param now milliseconds */
  constructor(sql: SqlStorage, now: () => number) {
    this.#sql = sql;
    this.#now = now;
  }

  /** @param headers those that every response with these events has */
  begin(tenant: string, headers: Readonly<Record<string, string>>): void {
    this.#sql.exec(SCHEMA);
    for (const [name, value] of Object.entries(headers)) {
      this.#sql.exec('INSERT INTO headers (name, value) VALUES (?, ?)', name, value);
    }
    this.#sql.exec('INSERT INTO stream (only, tenant, ended) VALUES (0, ?, 0)', tenant);
    this.#savedAt = this.#now();
  }

  /** Null if no stream has begun. Creates no tables, so a request for an unknown stream stores nothing. */
  stream(): { readonly tenant: string; readonly ended: boolean } | null {
    if (!hasTable(this.#sql, 'stream')) return null;
    const [row] = this.#sql
      .exec<{ tenant: string; ended: number }>('SELECT tenant, ended FROM stream')
      .toArray();
    return row === undefined ? null : { tenant: row.tenant, ended: row.ended !== 0 };
  }

  /** Returns the headers of a stream that has begun. */
  headers(): Record<string, string> {
    this.#sql.exec(SCHEMA); // A stream that a former version began has no table of headers.
    const rows = this.#sql.exec<{ name: string; value: string }>('SELECT name, value FROM headers');
    return Object.fromEntries([...rows].map(({ name, value }) => [name, value]));
  }

  /** Returns the number of the last event; 0 if there is none. */
  lastId(): number {
    const sql = 'SELECT id FROM pieces ORDER BY id DESC LIMIT 1';
    this.#lastId ??= this.#sql.exec<{ id: number }>(sql).toArray()[0]?.id ?? 0;
    return this.#lastId;
  }

  append(events: readonly string[]): void {
    let id = this.lastId();
    for (const event of events) {
      id += 1;
      const bytes = encoder.encode(`id: ${id}\n${event}\n\n`);
      for (let part = 0; part * PIECE_BYTES < bytes.length; part += 1) {
        const piece = bytes.slice(part * PIECE_BYTES, (part + 1) * PIECE_BYTES);
        this.#unsaved.push({ id, part, bytes: piece.buffer });
      }
      this.#unsavedBytes += bytes.length;
    }
    this.#lastId = id;
    if (this.#unsavedBytes >= UNSAVED.bytes || this.#now() - this.#savedAt >= UNSAVED.ms) this.#save();
  }

  #save(): void {
    for (const { id, part, bytes } of this.#unsaved) {
      this.#sql.exec('INSERT INTO pieces (id, part, bytes) VALUES (?, ?, ?)', id, part, bytes);
    }
    this.#unsaved = [];
    this.#unsavedBytes = 0;
    this.#savedAt = this.#now();
  }

  /** Leaves numbers out: those of events that were sent and are lost. */
  skip(): void {
    this.#lastId = this.lastId() + MOST_LOST;
  }

  end(): void {
    this.#save();
    this.#sql.exec('UPDATE stream SET ended = 1');
  }

  /** Returns about MAX_READ_BYTES of the pieces after a position; null if there are none. */
  after(position: LogPosition): LogChunk | null {
    const pieces: Uint8Array[] = [];
    let length = 0;
    let last: Piece | null = null;
    for (const piece of this.#piecesAfter(position)) {
      if (length >= MAX_READ_BYTES) return { bytes: joinedBytes(pieces), position: last!, isLast: false };
      pieces.push(new Uint8Array(piece.bytes));
      last = piece;
      length += piece.bytes.byteLength;
    }
    return last && { bytes: joinedBytes(pieces), position: endOf(last.id), isLast: true };
  }

  *#piecesAfter({ id, part }: LogPosition): Generator<Piece> {
    const lastSaved = (this.#unsaved[0]?.id ?? this.lastId() + 1) - 1;
    const sql = 'SELECT id, part, bytes FROM pieces WHERE (id, part) > (?, ?) ORDER BY id, part';
    // A reader of a running stream has nearly always read what is saved.
    if (id < lastSaved || part !== endOf(id).part) yield* this.#sql.exec<Piece>(sql, id, part);
    yield* this.#unsaved.filter((piece) => piece.id > id || (piece.id === id && piece.part > part));
  }
}
