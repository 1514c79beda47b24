import { type DBSchema, type IDBPDatabase, openDB } from 'idb';

interface Tables extends DBSchema {
  /** Settings and drafts by name. */
  values: { key: string; value: unknown };
  /** Completion trees by id, without their nodes. */
  trees: { key: string; value: unknown };
  /** Nodes by tree and number. */
  nodes: { key: [tree: string, node: number]; value: unknown };
}

export type Database = IDBPDatabase<Tables>;

let opened: Promise<Database> | null = null;

/** Opens the page's only database; later calls get the same connection. Rejects if site data is blocked. */
export async function openDatabase(): Promise<Database> {
  opened ??= openDB<Tables>('continuo', 1, {
    upgrade(database) {
      database.createObjectStore('values');
      database.createObjectStore('trees');
      database.createObjectStore('nodes');
    },
  });
  return opened;
}
