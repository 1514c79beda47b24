/** Rows of the journal. After so many entries, a checkpoint is due. */
const ROWS = 256;
const MAX_BYTES = 1_000_000;

/**
 * The changes of an object since its last checkpoint, one row each. Rows are used again and never deleted,
 * so that a change costs one written row. An entry has new values, not differences: of several, the last one
 * counts.
 */
export class Journal<Entry> {
  readonly #sql: SqlStorage;
  #number: number;
  #checkpoint: number;
  #records: number | null;
  #bytes = 0;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`
      CREATE TABLE IF NOT EXISTS journal (place INTEGER PRIMARY KEY, number INTEGER NOT NULL, entry TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS checkpoints (
        only INTEGER PRIMARY KEY CHECK (only = 0), number INTEGER NOT NULL, records INTEGER NOT NULL
      );`);
    const [row] = sql.exec<{ records: number }>('SELECT records FROM checkpoints').toArray();
    this.#records = row?.records ?? null;
    const lastIn = (table: string) =>
      sql.exec<{ number: number }>(`SELECT COALESCE(MAX(number), 0) AS number FROM ${table}`).one().number;
    this.#checkpoint = lastIn('checkpoints');
    this.#number = Math.max(this.#checkpoint, lastIn('journal'));
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
    const sql = 'SELECT entry FROM journal WHERE number > ? ORDER BY number';
    const rows = this.#sql.exec<{ entry: string }>(sql, this.#checkpoint).toArray();
    return rows.map(({ entry }) => JSON.parse(entry) as Entry);
  }

  /** Stores a change. Returns whether a checkpoint is due, in the same commit. */
  add(entry: Entry): boolean {
    this.#number += 1;
    const text = JSON.stringify(entry);
    this.#bytes += text.length;
    // A value of a table may have 2 MB of UTF-8.
    if (text.length > MAX_BYTES / 2) return true;
    const sql = `
      INSERT INTO journal (place, number, entry) VALUES (?1, ?2, ?3)
      ON CONFLICT (place) DO UPDATE SET number = ?2, entry = ?3`;
    this.#sql.exec(sql, this.#number % ROWS, this.#number, text);
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
    const sql = `
      INSERT INTO checkpoints (only, number, records) VALUES (0, ?1, ?2)
      ON CONFLICT (only) DO UPDATE SET number = ?1, records = ?2`;
    this.#sql.exec(sql, number, records);
  }
}
