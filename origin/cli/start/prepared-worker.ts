import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, URL } from 'node:url';
import { promisify } from 'node:util';
import { sourcesHash } from '@continuo/site/build/sources-hash.ts';
import { PACKAGED_WORKER, ROOT } from './installation.ts';
import type { PreparationTask, PreparedWorker } from './prepare-worker.ts';

/** What the prepared Worker of a checkout depends on. */
const SOURCES = ['package-lock.json', 'wrangler.toml', 'origin/cli/start/**', 'shared/**', 'worker/**'];
const KEPT = path.join(ROOT, 'worker/dist/prepared.json');
/** Characters of the prepared Worker at most. */
const MAX_PREPARED = 64 * 2 ** 20;

interface Kept {
  readonly hash: string;
  readonly worker: PreparedWorker;
}

let prepared: Promise<PreparedWorker> | null = null;

/** Returns the package's Worker, or that of the checkout's sources. A process reads it once. */
export const preparedWorker = (): Promise<PreparedWorker> => (prepared ??= readPrepared());

async function readPrepared(): Promise<PreparedWorker> {
  if (existsSync(PACKAGED_WORKER)) return JSON.parse(readFileSync(PACKAGED_WORKER, 'utf8')) as PreparedWorker;
  return keptFor(sourcesHash(ROOT, SOURCES), KEPT, () => prepareInProcess({ minifies: false }));
}

/** Returns what a file keeps for this hash of the sources. If that is another, `prepare` makes it anew. */
export async function keptFor(
  hash: string,
  file: string,
  prepare: () => Promise<PreparedWorker>,
): Promise<PreparedWorker> {
  const kept = readKept(file);
  if (kept?.hash === hash) return kept.worker;
  const worker = await prepare();
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    // Another process may write or read at the same moment.
    const written = `${file}.${process.pid}`;
    writeFileSync(written, JSON.stringify({ hash, worker } satisfies Kept));
    renameSync(written, file);
  } catch {
    // A checkout that cannot be written starts more slowly.
  }
  return worker;
}

function readKept(file: string): Kept | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Kept;
  } catch {
    return null;
  }
}

/** Wrangler and Vite would keep 330 MiB in the process that serves, so they run in one of their own. */
export async function prepareInProcess(task: PreparationTask): Promise<PreparedWorker> {
  const entry = fileURLToPath(new URL('./prepare-worker.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [entry, JSON.stringify(task)], {
    maxBuffer: MAX_PREPARED,
  }).catch(({ stderr }: { readonly stderr: string }) => {
    throw new Error(stderr.trim());
  });
  return JSON.parse(stdout.slice(stdout.lastIndexOf('\n'))) as PreparedWorker;
}
