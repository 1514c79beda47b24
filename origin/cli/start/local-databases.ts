import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { unstable_readConfig, unstable_splitSqlQuery } from 'wrangler';

/** The table in which `wrangler d1 migrations apply` records what it has applied. */
const TABLE = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

/** A D1 database of the simulator. */
export type Database = Awaited<ReturnType<Miniflare['getD1Database']>>;

const migrationsIn = (folder: string): string[] => globSync('*.sql', { cwd: folder }).toSorted();

/** Applies the migrations of a folder that a database lacks, in order. Each is applied whole or not at all. */
export async function migrate(database: Database, folder: string): Promise<void> {
  await database.prepare(TABLE).run();
  const { results } = await database.prepare('SELECT name FROM d1_migrations').all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  for (const name of migrationsIn(folder).filter((file) => !applied.has(file))) {
    const statements = unstable_splitSqlQuery(readFileSync(path.join(folder, name), 'utf8'));
    await database.batch([
      ...statements.map((statement) => database.prepare(statement)),
      database.prepare('INSERT INTO d1_migrations (name) VALUES (?)').bind(name),
    ]);
  }
}

interface ConfiguredDatabase {
  readonly binding: string;
  readonly database_id?: string;
  readonly migrations_dir?: string;
}

/**
 * Migrates the databases of a wrangler configuration in a state directory that no other process uses. Starts no workerd if
 * an earlier call has applied the same files.
 */
export async function migrateLocalDatabases(configuration: string, state: string): Promise<void> {
  const configured: readonly ConfiguredDatabase[] = unstable_readConfig({
    config: configuration,
  }).d1_databases;
  const databases = configured.map(({ binding, database_id: id = '', migrations_dir: folder = '' }) => {
    return { binding, id, folder: path.resolve(path.dirname(configuration), folder) };
  });
  const files = databases.flatMap(({ folder }) => migrationsIn(folder)).join('\n');
  const record = path.join(state, 'migrations');
  if (existsSync(record) && readFileSync(record, 'utf8') === files) return;
  const ids = Object.fromEntries(databases.map(({ binding, id }) => [binding, id]));
  const worker = {
    name: 'migrations',
    modules: true,
    script: 'export default {};',
    d1Databases: ids,
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
