import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { ROOT } from './installation.ts';

/** The table in which `wrangler d1 migrations apply` records what it has applied. */
const TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

/** A D1 database of the simulator. */
export type Database = Awaited<ReturnType<Miniflare['getD1Database']>>;

const migrationsIn = (folder: string): string[] => globSync('*.sql', { cwd: folder }).toSorted();

/** Applies the missing migrations of a folder to a database, in order: all of them, or none. */
export async function migrate(database: Database, folder: string): Promise<void> {
  await database.prepare(TABLE).run();
  const { results } = await database.prepare('SELECT name FROM d1_migrations').all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  const missing = migrationsIn(folder).filter((file) => !applied.has(file));
  if (missing.length === 0) return;
  const statements = missing.flatMap((name) => [
    readFileSync(path.join(folder, name), 'utf8'),
    `INSERT INTO d1_migrations (name) VALUES ('${name.replaceAll("'", "''")}')`,
  ]);
  // One statement for the simulator, which runs it in a transaction: a round trip for each would take 0.4 s.
  await database.prepare(statements.join('\n;\n')).run();
}

/** The simulator's names of databases. They stay, because they say where a state directory keeps the data. */
const LOCAL_IDS: Readonly<Record<string, string>> = {
  DB: '00000000-0000-0000-0000-000000000000',
  USAGE_DB: '00000000-0000-0000-0000-000000000003',
};

/** A database and the folder of its migrations, absolute or relative to the root. */
interface MigratedDatabase {
  readonly binding: string;
  readonly folder: string;
}

/** Returns the id of each database of a wrangler configuration in the simulator. */
export const localIds = (bindings: readonly string[]): Record<string, string> =>
  Object.fromEntries(bindings.map((binding) => [binding, LOCAL_IDS[binding] ?? binding]));

/**
 * Migrates the databases in a state directory that no other process uses. Starts no workerd if an earlier
 * call has applied the same files.
 */
export async function migrateLocalDatabases(
  migrated: readonly MigratedDatabase[],
  state: string,
): Promise<void> {
  const databases = migrated.map(({ binding, folder }) => ({ binding, folder: path.resolve(ROOT, folder) }));
  const files = databases.flatMap(({ folder }) => migrationsIn(folder)).join('\n');
  const record = path.join(state, 'migrations');
  if (existsSync(record) && readFileSync(record, 'utf8') === files) return;
  const worker = {
    name: 'migrations',
    modules: true,
    script: 'export default {};',
    d1Databases: localIds(databases.map(({ binding }) => binding)),
  } as const;
  const miniflare = new Miniflare({
    ...convertV4MiniflareOptions({ workers: [worker], cf: false }),
    resourcePersistencePath: state,
  });
  try {
    for (const { binding, folder } of databases)
      await migrate(await miniflare.getD1Database(binding), folder);
  } finally {
    await miniflare.dispose();
  }
  writeFileSync(record, files);
}
