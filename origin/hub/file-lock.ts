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
 * Locks a file between processes: SQLite's lock of a database file. Node has no other lock that the system releases when
 * a process is killed.
 * @returns the lock, which ends when it is closed; null if another process holds it
 * @throws Error if the file or its directory cannot be created
 */
export function tryFileLock(file: string): DatabaseSync | null {
  mkdirSync(path.dirname(file), { recursive: true });
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

/**
 * Runs `work` while it holds the lock of a file.
 * @throws HubError if the file cannot be locked; errors of `work` unchanged
 */
export async function withFileLock<T>(
  file: string,
  { onWait, sleep }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  let lock = lockOrFail(file);
  if (lock === null) onWait();
  while (lock === null) {
    await sleep(POLL_MS);
    lock = lockOrFail(file);
  }
  using _held = lock;
  return await work();
}

function lockOrFail(file: string): DatabaseSync | null {
  try {
    return tryFileLock(file);
  } catch (error) {
    throw new HubError(`cannot lock ${file}: ${errorMessage(error)}`);
  }
}
