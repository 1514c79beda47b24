import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from '@continuo/shared/error-details.ts';
import type { OriginConfig } from './config.ts';

const FAULTS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'read-only file system',
  ENOTDIR: 'not a directory',
  EEXIST: 'not a directory',
};

/** Creates the directory of the prefix cache, if one is set. @throws Error one line that names the variable */
export function requirePrefixDirectory({ model }: Pick<OriginConfig, 'model'>): void {
  const { directory } = model.engine.prefixDisk;
  if (directory === null) return;
  try {
    createDirectory(directory);
    accessSync(`${directory}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const code = errorCode(error) ?? '';
    const reason = FAULTS[code] === undefined ? code : `${FAULTS[code]}, ${code}`;
    const fault = `${directory} cannot be used (${reason})`;
    throw new Error(`CONTINUO_PREFIX_CACHE_DIR: ${fault}; name a directory that the origin may write to`);
  }
}

/** Node's own recursive mkdir never ends in /proc, where a directory cannot be created although its parent exists. */
function createDirectory(directory: string): void {
  if (existsSync(directory)) return;
  const parent = dirname(directory);
  if (parent !== directory) createDirectory(parent);
  mkdirSync(directory, { mode: 0o700 });
}
