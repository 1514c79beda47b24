import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import type { Environment } from '@continuo/origin/config/environment.ts';

/** Where the program lies and keeps its state: in a checkout, or compiled in a package. */

/** The checkout, or the folder of the installed package, which has the same layout. */
export const ROOT = path.resolve(import.meta.dirname, '../../..');

/** What only a package has: the Worker, ready to run. A checkout prepares its own. */
export const PACKAGED_WORKER = path.join(ROOT, 'worker/prepared.json');

/** The directory of keys, databases and logs. A package is replaced whole: its state is the user's data. */
export function stateDirectory(
  environment: Environment,
  isPackage: boolean = existsSync(PACKAGED_WORKER),
): string {
  const named = environment.CONTINUO_STATE_DIR;
  if (isPackage) return named ? path.resolve(named) : path.join(dataDirectory(environment), 'continuo');
  return path.resolve(ROOT, named || '.continuo');
}

/** The user's directory of programs' data, by the rules of the platform. */
function dataDirectory({ XDG_DATA_HOME, LOCALAPPDATA }: Environment): string {
  if (process.platform === 'win32') return LOCALAPPDATA || path.join(homedir(), 'AppData', 'Local');
  if (process.platform === 'darwin') return path.join(homedir(), 'Library', 'Application Support');
  return XDG_DATA_HOME || path.join(homedir(), '.local', 'share');
}
