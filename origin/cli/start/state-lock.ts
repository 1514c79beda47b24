import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { requireDirectory } from '@continuo/origin/config/writable-directory.ts';
import { tryFileLock } from '@continuo/origin/hub/fetch/file-lock.ts';

/**
 * Locks a state directory for this process, and creates it if necessary. The lock of a process that was
 * killed is gone, so there are no stale locks.
 * @param setting the variable or option that names the directory
 * @returns the lock; disposing it releases the directory
 * @throws Error one line that names the holder or, if the directory cannot be written, the setting
 */
export function lockStateDirectory(directory: string, setting: string): Disposable {
  requireDirectory(directory, setting);
  const holder = path.join(directory, 'launcher.pid');
  const lock = tryFileLock(path.join(directory, 'launcher.lock'));
  if (lock === null) {
    // The holder writes its id right after it has locked the directory.
    const id = existsSync(holder) ? readFileSync(holder, 'utf8').trim() : '(unknown)';
    throw new Error(
      `The state directory ${directory} is in use by process ${id}. Stop it, or set ${setting} to another directory.`,
    );
  }
  writeFileSync(holder, `${process.pid}\n`);
  return lock;
}
