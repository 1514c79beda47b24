import { DatabaseSync } from 'node:sqlite';

type Value = string | number | ArrayBuffer;

/**
 * The database of a Durable Object, in Node's SQLite.
 * @param onWrite gets the number of rows that a statement has written
 */
export function sqlStorage(onWrite: (rows: number) => void = () => {}): SqlStorage {
  const database = new DatabaseSync(':memory:');
  const exec = (sql: string, ...values: Value[]) => {
    if (values.length === 0 && /^\s*(CREATE|DROP)/.test(sql)) return database.exec(sql);
    const statement = database.prepare(sql);
    const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    // In a Durable Object, statements run at once, even if their rows are not read.
    if (!/^\s*SELECT/.test(sql)) {
      const rowsWritten = Number(statement.run(...bound).changes);
      onWrite(rowsWritten);
      return { rowsWritten };
    }
    const rows = () => statement.iterate(...bound);
    const raw = () => statement.all(...bound).map((row) => Object.values(row));
    return { [Symbol.iterator]: rows, toArray: () => [...rows()], one: () => [...rows()][0], raw };
  };
  return { exec, databaseSize: 0 } as unknown as SqlStorage;
}
