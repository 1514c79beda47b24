import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../../shared/message-of.ts';
import { HubError } from './hub-error.ts';

/**
 * A lock between processes that goes with its process, however that ends: the lock SQLite takes on its file. Node
 * offers no other, and a file whose mere presence is the lock outlives a killed process.
 */

export interface LockOptions {
  /** Called once when somebody else holds the lock. */
  readonly onWait: () => void;
  readonly sleep: (ms: number) => Promise<void>;
}

const SQLITE_BUSY = 5;
const LOOK_AGAIN_MS = 200;

/**
 * Runs `work` while no other process, and no other caller in this one, holds the lock of the same file.
 * @throws HubError when the file cannot be made; whatever `work` throws
 */
export async function withFileLock<T>(
  file: string,
  { onWait, sleep }: LockOptions,
  work: () => Promise<T>,
): Promise<T> {
  using database = openLock(file);
  for (let waits = 0; !tryLock(database); waits += 1) {
    if (waits === 0) onWait();
    await sleep(LOOK_AGAIN_MS);
  }
  return await work();
}

function openLock(file: string): DatabaseSync {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    return new DatabaseSync(file, { timeout: 0 });
  } catch (error) {
    throw new HubError(`cannot lock ${file}: ${messageOf(error)}`);
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw new HubError(`cannot lock the cache: ${messageOf(error)}`);
  }
}
