import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../../..');

/** The part of a D1 database the tests use. */
export interface Database {
  prepare(sql: string): {
    bind(...values: unknown[]): { all(): Promise<{ results: unknown[] }>; run(): Promise<unknown> };
    all(): Promise<{ results: unknown[] }>;
    run(): Promise<unknown>;
  };
}

/** Applies the repository's migrations in order; by default those of both databases. */
export async function migrate(
  db: Database,
  folders: readonly string[] = ['migrations', 'usage-migrations'],
): Promise<void> {
  const files = folders.flatMap((folder) => globSync(`worker/${folder}/*.sql`, { cwd: ROOT }).toSorted());
  for (const file of files) {
    const statements = readFileSync(path.join(ROOT, file), 'utf8').replaceAll(/--.*$/gm, '').split(';');
    for (const statement of statements) if (statement.trim() !== '') await db.prepare(statement).run();
  }
}
