import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type CommandContext, migrateCommand } from './child-commands.ts';
import type { Command } from './process-group.ts';

/**
 * Migrates the local database, unless an earlier start already did; running the tool takes seconds.
 * @throws Error if the tool fails
 */
export async function migrateOnce(
  context: CommandContext,
  run: (command: Command) => Promise<{ readonly code: number | null }>,
): Promise<void> {
  const wanted = readdirSync(path.join(context.root, 'worker', 'migrations'))
    .toSorted()
    .join('\n');
  const record = path.join(context.stateDirectory, 'migrations');
  if (existsSync(record) && readFileSync(record, 'utf8') === wanted) return;
  const command = migrateCommand(context);
  const { code } = await run(command);
  if (code !== 0) {
    throw new Error(`The ${command.name} failed:\n${readFileSync(command.logFile, 'utf8').trim()}`);
  }
  writeFileSync(record, wanted);
}
