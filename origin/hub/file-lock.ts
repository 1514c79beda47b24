import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { HubError } from './hub-error.ts';

export interface LockOptions {
  /** Called once if another process holds the lock. */
  readonly onWait: () => void;
  readonly sleep: (ms: number) => Promise<void>;
}

const SQLITE_BUSY = 5;
const POLL_MS = 200;

/**
 * Runs `work` while it holds a lock between processes: SQLite's lock of a database file. Node has no other lock that the
 * system releases when a process is killed.
 * @throws HubError if the lock file cannot be created; errors of `work` unchanged
 */
export async function withFileLock<T>(
  file: string,
  { onWait, sleep }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  using database = openLock(file);
  for (let polls = 0; !tryLock(database); polls += 1) {
    if (polls === 0) onWait();
    await sleep(POLL_MS);
  }
  return await work();
}

function openLock(file: string): DatabaseSync {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    return new DatabaseSync(file, { timeout: 0 });
  } catch (error) {
    throw new HubError(`cannot lock ${file}: ${errorMessage(error)}`);
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw new HubError(`cannot lock the cache: ${errorMessage(error)}`);
  }
}
