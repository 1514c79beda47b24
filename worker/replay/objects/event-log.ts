const SCHEMA = `
  CREATE TABLE IF NOT EXISTS pieces (
    id INTEGER, part INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (id, part)
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS stream (only INTEGER PRIMARY KEY CHECK (only = 0), tenant TEXT NOT NULL, ended INTEGER NOT NULL);
`;

/** No value may be larger than two megabytes, and an event may. */
const PIECE_BYTES = 65_536;
/** Bytes read at a time. A follower takes as long as it likes over them, and anybody may have many. */
const MOST_READ = 65_536;

const encoder = new TextEncoder();

/** Up to where a stream has been read: a part of the event of this number. */
export type Place = { readonly id: number; readonly part: number };

/** A part of an event as it is sent. */
type Piece = Place & { readonly bytes: ArrayBuffer };

export interface Reading {
  readonly bytes: Uint8Array;
  readonly place: Place;
}

/** Behind all of an event. */
export const behind = (id: number): Place => ({ id, part: Number.MAX_SAFE_INTEGER });

/** The events of one stream in its object's database, numbered in their order. */
export class EventLog {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  begin(tenant: string): void {
    this.#sql.exec(SCHEMA);
    this.#sql.exec('INSERT INTO stream (only, tenant, ended) VALUES (0, ?, 0)', tenant);
  }

  /** Null where none has begun. Tables come with a stream: who asks for one that never was leaves nothing behind. */
  stream(): { readonly tenant: string; readonly ended: boolean } | null {
    const tables = this.#sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'stream'").toArray();
    if (tables.length === 0) return null;
    const [row] = this.#sql
      .exec<{ tenant: string; ended: number }>('SELECT tenant, ended FROM stream')
      .toArray();
    return row === undefined ? null : { tenant: row.tenant, ended: row.ended !== 0 };
  }

  keep(blocks: readonly string[]): void {
    const sql = 'SELECT id FROM pieces ORDER BY id DESC LIMIT 1';
    let [{ id } = { id: 0 }] = this.#sql.exec<{ id: number }>(sql).toArray();
    for (const block of blocks) {
      id += 1;
      const bytes = encoder.encode(`id: ${id}\n${block}\n\n`);
      for (let part = 0; part * PIECE_BYTES < bytes.length; part += 1) {
        const piece = bytes.slice(part * PIECE_BYTES, (part + 1) * PIECE_BYTES);
        this.#sql.exec('INSERT INTO pieces (id, part, bytes) VALUES (?, ?, ?)', id, part, piece.buffer);
      }
    }
  }

  end(): void {
    this.#sql.exec('UPDATE stream SET ended = 1');
  }

  /** What comes first after a place: null if there is no more, and not much. */
  after({ id, part }: Place): Reading | null {
    const sql = 'SELECT id, part, bytes FROM pieces WHERE (id, part) > (?, ?) ORDER BY id, part';
    const pieces: Piece[] = [];
    let length = 0;
    for (const piece of this.#sql.exec<Piece>(sql, id, part)) {
      pieces.push(piece);
      length += piece.bytes.byteLength;
      if (length >= MOST_READ) break;
    }
    const last = pieces.at(-1);
    return last ? { bytes: joined(pieces, length), place: { id: last.id, part: last.part } } : null;
  }
}

function joined(pieces: readonly Piece[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const { bytes } of pieces) {
    whole.set(new Uint8Array(bytes), at);
    at += bytes.byteLength;
  }
  return whole;
}
