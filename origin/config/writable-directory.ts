import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode, errorMessage } from '@continuo/shared/error-details.ts';

/**
 * Creates a directory that only this user can read, unless it exists.
 * @param setting the variable or option that names it
 * @throws Error one line that names the setting, if files cannot be written there
 */
export function requireDirectory(directory: string, setting: string): void {
  try {
    createDirectory(directory, 0o700);
    accessSync(`${directory}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const fault = `${directory} cannot be used (${errorMessage(error)})`;
    throw new Error(`${setting}: ${fault}; name a directory that Continuo may write to`);
  }
}

/** Node's own recursive mkdir never ends in /proc, where a directory cannot be created. */
export function createDirectory(directory: string, mode?: number): void {
  if (existsSync(directory)) return;
  const parent = dirname(directory);
  if (parent !== directory) createDirectory(parent, mode);
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    // Another process may have created it meanwhile.
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}
