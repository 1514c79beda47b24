import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const BUILD = path.resolve(import.meta.dirname, '../../worker/site/build/main.ts');

/** Builds the page once, before worker processes that would each build it. */
export async function setup(): Promise<void> {
  await promisify(execFile)(process.execPath, [BUILD]);
}
