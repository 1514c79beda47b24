import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { errorMessage } from '@continuo/shared/error-details.ts';

const SQLITE_BUSY = 5;

/**
 * Locks a state directory for this process, and creates it if necessary. The system releases SQLite's file lock when a
 * process is killed, so there are no stale locks.
 * @returns the lock; disposing it releases the directory
 * @throws Error one line that names the holder or, if the directory cannot be written, the variable
 */
export function lockStateDirectory(directory: string): Disposable {
  const holder = path.join(directory, 'launcher.pid');
  const lock = openLock(directory);
  if (!tryLock(lock)) {
    lock.close();
    throw new Error(
      `The state directory ${directory} is in use by process ${readHolder(holder)}. Stop it, or set CONTINUO_STATE_DIR to another directory.`,
    );
  }
  writeFileSync(holder, `${process.pid}\n`);
  return { [Symbol.dispose]: () => lock.close() };
}

function openLock(directory: string): DatabaseSync {
  try {
    mkdirSync(directory, { recursive: true });
    return new DatabaseSync(path.join(directory, 'launcher.lock'), { timeout: 0 });
  } catch (error) {
    throw new Error(
      `CONTINUO_STATE_DIR: the directory ${directory} cannot be written (${errorMessage(error)}).`,
    );
  }
}

function tryLock(lock: DatabaseSync): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw error;
  }
}

/** The holder writes its id right after it has locked the directory. */
function readHolder(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '(unknown)';
  }
}
