import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { preparedWorker } from '../../../origin/cli/start/prepared-worker.ts';

const BUILD = path.resolve(import.meta.dirname, '../../../worker/site/build/main.ts');

/** Builds the page and the Worker once, before worker processes that would each build them. */
export async function setup(): Promise<void> {
  await Promise.all([promisify(execFile)(process.execPath, [BUILD]), preparedWorker()]);
}
