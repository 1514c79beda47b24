import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const BUILD = path.resolve(import.meta.dirname, '../../worker/site/build/main.ts');

/** Builds the page once, before worker processes start that would build it at the same time, each under the other's tests. */
export async function setup(): Promise<void> {
  await promisify(execFile)(process.execPath, [BUILD]);
}
