import { Table } from '../usage/object-tables.ts';

/** Rows of the journal. After so many entries, a checkpoint is due. */
const ROWS = 256;
const MAX_BYTES = 1_000_000;

/**
 * The changes of an object since its last checkpoint, one row each. Rows are used again and never deleted,
 * so that a change costs one written row. An entry has new values, not differences: of several, the last one
 * counts.
 */
export class Journal<Entry> {
  readonly #rows: Table<'journal'>;
  readonly #checkpoints: Table<'checkpoints'>;
  #number: number;
  #checkpoint: number;
  #records: number | null;
  #bytes = 0;

  constructor(sql: SqlStorage) {
    this.#rows = new Table(sql, 'journal');
    this.#checkpoints = new Table(sql, 'checkpoints');
    const [last] = this.#checkpoints.rows();
    this.#records = last?.records ?? null;
    this.#checkpoint = last?.number ?? 0;
    this.#number = this.#unread().at(-1)?.number ?? this.#checkpoint;
  }

  #unread() {
    return this.#rows.rows('WHERE number > ? ORDER BY number', this.#checkpoint);
  }

  /** Number of the last change. */
  get number(): number {
    return this.#number;
  }

  /** Number of the last record before the checkpoint; null = there has been no checkpoint. */
  get records(): number | null {
    return this.#records;
  }

  /** Returns the entries since the last checkpoint, oldest first. */
  entries(): Entry[] {
    return this.#unread().map(({ entry }) => JSON.parse(entry) as Entry);
  }

  /** Stores a change. Returns whether a checkpoint is due, in the same commit. */
  add(entry: Entry): boolean {
    this.#number += 1;
    const text = JSON.stringify(entry);
    this.#bytes += text.length;
    // A value of a table may have 2 MB of UTF-8.
    if (text.length > MAX_BYTES / 2) return true;
    this.#rows.put({ place: this.#number % ROWS, number: this.#number, entry: text });
    return this.#number - this.#checkpoint >= ROWS || this.#bytes > MAX_BYTES;
  }

  /**
   * All changes are in their tables: their rows may be used again.
   * @param records number of the last record
   */
  checkpoint(records: number): void {
    this.resume(this.#number + 1, records);
  }

  /** Goes on after these numbers: they were the last ones before all data was deleted. */
  resume(number: number, records: number): void {
    this.#bytes = 0;
    this.#number = number;
    this.#checkpoint = number;
    this.#records = records;
    this.#checkpoints.put({ only: 0, number, records });
  }
}
