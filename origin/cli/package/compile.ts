import { globSync } from 'node:fs';
import path from 'node:path';
import { build } from 'vite';
import { ROOT } from '../start/installation.ts';

/** The first entry. The others are modules that threads and processes start, which `new URL(…)` names. */
const MAIN = 'origin/cli/main.ts';
const STARTED = /new URL\('(\.[^']+)\.ts', import\.meta\.url\)/g;

/** Node runs no TypeScript in node_modules, so the names of started modules follow the compiled files. */
export const renameStarted = (code: string): string =>
  code.replace(STARTED, "new URL('$1.js', import.meta.url)");

/** The folders whose modules run in Node. */
const FOLDERS = 'origin/**/*.ts';

/** Returns the modules that a thread or a process starts, relative to the root. */
function startedModules(read: (file: string) => string): string[] {
  const files = globSync(FOLDERS, { cwd: ROOT, exclude: ['**/node_modules/**'] });
  return files.flatMap((file) =>
    [...read(file).matchAll(STARTED)].map(([, name]) => path.join(path.dirname(file), `${name}.ts`)),
  );
}

/**
 * Compiles the command line, the origin and all that they import to JavaScript, each module into a file of its own at the
 * same place, so that paths relative to a module stay true.
 */
export async function compile(out: string, read: (file: string) => string): Promise<void> {
  const entries = [...new Set([MAIN, ...startedModules(read)])];
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
