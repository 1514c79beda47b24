import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { tryFileLock } from '@continuo/origin/hub/file-lock.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';

/**
 * Locks a state directory for this process, and creates it if necessary. The lock of a process that was killed is gone, so
 * there are no stale locks.
 * @returns the lock; disposing it releases the directory
 * @throws Error one line that names the holder or, if the directory cannot be written, the variable
 */
export function lockStateDirectory(directory: string): Disposable {
  const holder = path.join(directory, 'launcher.pid');
  const lock = openLock(directory);
  if (lock === null) {
    throw new Error(
      `The state directory ${directory} is in use by process ${readHolder(holder)}. Stop it, or set CONTINUO_STATE_DIR to another directory.`,
    );
  }
  writeFileSync(holder, `${process.pid}\n`);
  return lock;
}

function openLock(directory: string): Disposable | null {
  try {
    return tryFileLock(path.join(directory, 'launcher.lock'));
  } catch (error) {
    throw new Error(
      `CONTINUO_STATE_DIR: the directory ${directory} cannot be written (${errorMessage(error)}).`,
    );
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
