import path from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { createDirectory } from '../../config/writable-directory.ts';
import { HubError } from './hub-error.ts';

export interface LockOptions {
  /** Called once if another process holds the lock. */
  readonly onWait: () => void;
  readonly sleep: (ms: number) => Promise<void>;
}

const SQLITE_BUSY = 5;
const POLL_MS = 200;

/** Loads SQLite without the warning of Node 22 that it is experimental. */
function loadSqlite() {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return process.getBuiltinModule('node:sqlite');
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Locks a file between processes: SQLite's lock of a database file. Node has no other lock that the system
 * releases when a process is killed.
 * @returns the lock, which ends when it is closed; null if another process holds it
 * @throws HubError if the file or its directory cannot be created
 */
export function tryFileLock(file: string): DatabaseSync | null {
  let database: DatabaseSync | null = null;
  try {
    createDirectory(path.dirname(file));
    database = new (loadSqlite().DatabaseSync)(file, { timeout: 0 });
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw new HubError(`cannot lock ${file}: ${errorMessage(error)}`);
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
  let lock = tryFileLock(file);
  if (lock === null) onWait();
  while (lock === null) {
    await sleep(POLL_MS);
    lock = tryFileLock(file);
  }
  using _held = lock;
  return await work();
}
