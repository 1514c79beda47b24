import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundleWorker } from '../start/bundle-worker.ts';
import { BUNDLED_WORKER, ROOT } from '../start/installation.ts';
import { buildSite } from '../start/local-worker.ts';
import { compile, renameStarted } from './compile.ts';
import { packageManifest } from './manifest.ts';

/** What the package holds in addition to modules, at the same place as in a checkout. */
const FILES = [
  'LICENSE',
  'wrangler.toml',
  'worker/migrations',
  'worker/usage-migrations',
  'worker/site/dist/public',
  'origin/models/continuo-mini',
];
const README = 'origin/cli/package/README.md';
const BIN = 'origin/cli/continuo.js';

const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** Writes the package's files into an empty directory: compiled modules, the Worker as one module, the page, the model. */
export async function stagePackage(directory: string): Promise<void> {
  const write = (file: string, text: string) => writeFileSync(path.join(directory, file), text);
  await buildSite();
  await compile(directory, read);
  for (const file of FILES) cpSync(path.join(ROOT, file), path.join(directory, file), { recursive: true });
  write(path.relative(ROOT, BUNDLED_WORKER), await bundleWorker(true));
  write(BIN, renameStarted(read(BIN)));
  write('README.md', read(README));
  write('package.json', JSON.stringify(packageManifest(), null, 2));
}
