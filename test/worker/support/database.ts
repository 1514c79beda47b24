import path from 'node:path';
import { type Database, migrate as migrateFrom } from '../../../origin/cli/start/local-databases.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

export type { Database };

/** Applies the repository's migrations in order; by default those of both databases. */
export async function migrate(
  db: Database,
  folders: readonly string[] = ['migrations', 'usage-migrations'],
): Promise<void> {
  for (const folder of folders) await migrateFrom(db, path.join(ROOT, 'worker', folder));
}
