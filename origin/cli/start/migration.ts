import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type CommandContext, migrateCommand } from './child-commands.ts';
import type { Command } from './process-group.ts';

/** Folders of the migrations of both databases. */
const FOLDERS = ['migrations', 'usage-migrations'];

/**
 * Migrates the local databases, unless an earlier start already did; running the tool takes seconds.
 * @throws Error if the tool fails
 */
export async function migrateOnce(
  context: CommandContext,
  run: (command: Command) => Promise<{ readonly code: number | null }>,
): Promise<void> {
  const folders = FOLDERS.map((folder) => path.join(context.root, 'worker', folder));
  const wanted = folders.flatMap((folder) => readdirSync(folder).toSorted()).join('\n');
  const record = path.join(context.stateDirectory, 'migrations');
  if (existsSync(record) && readFileSync(record, 'utf8') === wanted) return;
  for (const binding of ['DB', 'USAGE_DB'] as const) {
    const command = migrateCommand(context, binding);
    const { code } = await run(command);
    if (code !== 0) {
      throw new Error(`The ${command.name} failed:\n${readFileSync(command.logFile, 'utf8').trim()}`);
    }
  }
  writeFileSync(record, wanted);
}
