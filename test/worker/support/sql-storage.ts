import { DatabaseSync } from 'node:sqlite';

type Value = string | number | ArrayBuffer;

/** The database of a Durable Object, in Node's SQLite. */
export function sqlStorage(): SqlStorage {
  const database = new DatabaseSync(':memory:');
  const exec = (sql: string, ...values: Value[]) => {
    if (values.length === 0 && /^\s*(CREATE|DROP)/.test(sql)) return database.exec(sql);
    const statement = database.prepare(sql);
    const bound = values.map((value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value));
    // In a Durable Object, statements run at once, even if their rows are not read.
    if (!/^\s*SELECT/.test(sql)) return { rowsWritten: Number(statement.run(...bound).changes) };
    const rows = () => statement.iterate(...bound);
    return { [Symbol.iterator]: rows, toArray: () => [...rows()], one: () => [...rows()][0] };
  };
  return { exec } as unknown as SqlStorage;
}
