import { joinedBytes } from '@continuo/shared/framing.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS pieces (
    id INTEGER, part INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (id, part)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS stream (only INTEGER PRIMARY KEY CHECK (only = 0), tenant TEXT NOT NULL, ended INTEGER NOT NULL);
`;

/** A SQLite value holds at most 2 MB. Larger events are stored in pieces of this size. */
const PIECE_BYTES = 65_536;
/** Bytes per read. Readers may be slow and many, so each of them holds only this much. */
const MAX_READ_BYTES = 65_536;

const encoder = new TextEncoder();

/** How far a reader has read: a piece of the event with this number. */
export type LogPosition = { readonly id: number; readonly part: number };

/** A piece of an event as it is sent. */
type Piece = LogPosition & { readonly bytes: ArrayBuffer };

export interface LogChunk {
  readonly bytes: Uint8Array;
  readonly position: LogPosition;
}

/** The position after the last piece of an event. */
export const endOf = (id: number): LogPosition => ({ id, part: Number.MAX_SAFE_INTEGER });

/** The numbered events of one stream in its object's database. */
export class EventLog {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  begin(tenant: string): void {
    this.#sql.exec(SCHEMA);
    this.#sql.exec('INSERT INTO stream (only, tenant, ended) VALUES (0, ?, 0)', tenant);
  }

  /** Null if no stream has begun. Creates no tables, so a request for an unknown stream stores nothing. */
  stream(): { readonly tenant: string; readonly ended: boolean } | null {
    const tables = this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'stream'").toArray();
    if (tables.length === 0) return null;
    const [row] = this.#sql
      .exec<{ tenant: string; ended: number }>('SELECT tenant, ended FROM stream')
      .toArray();
    return row === undefined ? null : { tenant: row.tenant, ended: row.ended !== 0 };
  }

  /** Returns the number of the last event; 0 if there is none. */
  lastId(): number {
    const sql = 'SELECT id FROM pieces ORDER BY id DESC LIMIT 1';
    const [{ id } = { id: 0 }] = this.#sql.exec<{ id: number }>(sql).toArray();
    return id;
  }

  append(events: readonly string[]): void {
    let id = this.lastId();
    for (const event of events) {
      id += 1;
      const bytes = encoder.encode(`id: ${id}\n${event}\n\n`);
      for (let part = 0; part * PIECE_BYTES < bytes.length; part += 1) {
        const piece = bytes.slice(part * PIECE_BYTES, (part + 1) * PIECE_BYTES);
        this.#sql.exec('INSERT INTO pieces (id, part, bytes) VALUES (?, ?, ?)', id, part, piece.buffer);
      }
    }
  }

  end(): void {
    this.#sql.exec('UPDATE stream SET ended = 1');
  }

  /** Returns about MAX_READ_BYTES of the pieces after a position; null if there are none. */
  after({ id, part }: LogPosition): LogChunk | null {
    const sql = 'SELECT id, part, bytes FROM pieces WHERE (id, part) > (?, ?) ORDER BY id, part';
    const pieces: Uint8Array[] = [];
    let length = 0;
    let last: Piece | null = null;
    for (const piece of this.#sql.exec<Piece>(sql, id, part)) {
      pieces.push(new Uint8Array(piece.bytes));
      last = piece;
      length += piece.bytes.byteLength;
      if (length >= MAX_READ_BYTES) break;
    }
    return last ? { bytes: joinedBytes(pieces), position: { id: last.id, part: last.part } } : null;
  }
}
