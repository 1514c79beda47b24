import { chmodSync, cpSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build } from 'vite';
import { PACKAGED_WORKER, ROOT } from '../start/installation.ts';
import { buildSite } from '../start/local-worker.ts';
import { prepareInProcess } from '../start/prepared-worker.ts';
import { packageManifest } from './manifest.ts';

/** What the package holds in addition to modules, at the same place as in a checkout. */
const FILES = [
  'LICENSE',
  'worker/migrations',
  'worker/usage-migrations',
  'worker/site/dist/public',
  'origin/models/continuo-mini',
  'origin/model/runner/device/kernels',
];
const README = 'origin/cli/package/README.md';
const BIN = 'origin/cli/continuo.js';

const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** The first entry. The others are modules that threads and processes start, which `new URL(…)` names. */
const MAIN = 'origin/cli/main.ts';
const STARTED = /new URL\('(\.[^']+)\.ts', import\.meta\.url\)/g;

/** Node runs no TypeScript in node_modules, so the names of started modules follow the compiled files. */
const renameStarted = (code: string): string => code.replace(STARTED, "new URL('$1.js', import.meta.url)");

/** The folders whose modules run in Node. */
const FOLDERS = 'origin/**/*.ts';

/** Returns the modules that a thread or a process starts, relative to the root. */
function startedModules(): string[] {
  const files = globSync(FOLDERS, { cwd: ROOT, exclude: ['**/node_modules/**'] });
  return files.flatMap((file) =>
    [...read(file).matchAll(STARTED)].map(([, name]) => path.join(path.dirname(file), `${name}.ts`)),
  );
}

/**
 * Compiles the command line, the origin and all that they import to JavaScript. Each module becomes a file at
 * the same place, so that paths relative to it stay true.
 */
async function compile(out: string): Promise<void> {
  const entries = [...new Set([MAIN, ...startedModules()])];
  await build({
    root: ROOT,
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    plugins: [{ name: 'started-modules', enforce: 'pre', transform: renameStarted }],
    build: {
      outDir: out,
      ssr: true,
      minify: false,
      target: 'node22',
      rolldownOptions: {
        input: entries.map((file) => path.join(ROOT, file)),
        output: { preserveModules: true, preserveModulesRoot: ROOT, entryFileNames: '[name].js' },
      },
    },
  });
}

/** Writes the package's files to an empty directory: modules, the Worker as one, the page, the model. */
export async function stagePackage(directory: string): Promise<void> {
  const write = (file: string, text: string) => writeFileSync(path.join(directory, file), text);
  await buildSite();
  await compile(directory);
  for (const file of FILES) cpSync(path.join(ROOT, file), path.join(directory, file), { recursive: true });
  write(path.relative(ROOT, PACKAGED_WORKER), JSON.stringify(await prepareInProcess({ minifies: true })));
  write(BIN, renameStarted(read(BIN)));
  write('README.md', read(README));
  write('package.json', JSON.stringify(packageManifest(), null, 2));
  // Neither the umask of this process nor that of `npm start`, which builds the page, is for other machines.
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true }))
    chmodSync(path.join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
}
