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

/** Applies the repository's migrations in order. */
export async function migrate(db: Database): Promise<void> {
  for (const file of globSync('worker/migrations/*.sql', { cwd: ROOT }).toSorted()) {
    const statements = readFileSync(path.join(ROOT, file), 'utf8').replaceAll(/--.*$/gm, '').split(';');
    for (const statement of statements) if (statement.trim() !== '') await db.prepare(statement).run();
  }
}
