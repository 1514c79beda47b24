/** The SQLite database of a Durable Object, as far as this file needs it. */
interface ObjectDatabase {
  exec<Row extends Record<string, string | number | null | ArrayBuffer>>(
    sql: string,
    ...values: (string | number)[]
  ): { toArray(): Row[] };
}

/** Returns whether an object's database has a table of this name. */
export const hasTable = (sql: ObjectDatabase, name: string): boolean =>
  sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name).toArray().length > 0;

/**
 * Records the format of an object's database, and refuses one that a later, incompatible Worker has written.
 * After a roll back, a Worker must not guess at reservations or batches. Databases that are older than the
 * record have the first format.
 * @param format rises only if the Worker of the release before could not read what this one writes
 */
export function requireFormat(sql: ObjectDatabase, format: number): void {
  sql.exec(
    'CREATE TABLE IF NOT EXISTS format (only INTEGER PRIMARY KEY CHECK (only = 0), version INTEGER NOT NULL)',
  );
  const [{ version } = { version: 0 }] = sql
    .exec<{ version: number }>('SELECT version FROM format')
    .toArray();
  if (version > format) {
    throw new Error(`The object's database has format ${version}; this Worker knows up to ${format}.`);
  }
  if (version < format) sql.exec('INSERT OR REPLACE INTO format (only, version) VALUES (0, ?)', format);
}

/** Adds a column to a table of an older release. @param definition its name and type */
export function addColumn(sql: ObjectDatabase, table: string, definition: string): void {
  const has = "SELECT 1 FROM sqlite_master WHERE name = ? AND instr(sql, ' ' || ? || ' ') > 0";
  if (sql.exec(has, table, definition.split(' ')[0]!).toArray().length === 0)
    sql.exec(`ALTER TABLE ${table} ADD COLUMN ${definition}`);
}
