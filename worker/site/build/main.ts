import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { sourcesHash } from './sources-hash.ts';

/**
 * Builds the page into worker/site/dist/public, from where the Worker serves it. Does nothing if the sources
 * are those of the last build.
 */

const ROOT = path.resolve(import.meta.dirname, '../../..');
const OUT = path.join(ROOT, 'worker/site/dist');
const PUBLIC = path.join(OUT, 'public');
const STAMP = path.join(OUT, 'sources');

/** What the model in the browser is made of. */
const LOCAL_SOURCES = [
  ...['engine', 'grammar', 'local', 'model', 'models', 'request', 'sampling', 'tokenizer'].map(
    (folder) => `origin/${folder}/**`,
  ),
  ...['worker/dialects/**', 'worker/generation/format/**'],
];
/** What the result depends on. */
const SOURCES = ['worker/site/**', 'shared/**', 'docs/**', 'package-lock.json', ...LOCAL_SOURCES];

const isCurrent = (hash: string): boolean =>
  existsSync(PUBLIC) && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === hash;

/** Moves a result to its place, where another process may put its own at the same moment. */
function publish(built: string): void {
  for (;;) {
    rmSync(PUBLIC, { recursive: true, force: true });
    try {
      renameSync(built, PUBLIC);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    }
  }
}

async function build(hash: string): Promise<void> {
  // In tests, another value would write places of the sources into the files.
  process.env.NODE_ENV = 'production';
  const { build: viteBuild } = await import('vite');
  // Another process may build at the same time, and both results are the same.
  const built = path.join(OUT, String(process.pid));
  try {
    await viteBuild({
      configFile: path.join(import.meta.dirname, 'vite.config.ts'),
      build: { outDir: built, emptyOutDir: true },
    });
    publish(built);
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
  writeFileSync(STAMP, hash);
}

const hash = sourcesHash(ROOT, SOURCES);
if (!isCurrent(hash)) await build(hash);
