import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileOfPackage } from '../source-graph.ts';

/**
 * Divides the test files into groups that can be run separately. A test is in `unit` if nothing that it
 * imports, directly or through other files, can start a process, a thread, a server, workerd or ONNX Runtime.
 * The other tests belong to the group of their folder.
 */

/** In the order in which they run: those with the longest files first. */
export const GROUPS = ['e2e', 'worker', 'origin', 'unit'] as const;
export type Group = (typeof GROUPS)[number];

const STARTERS = [
  ...['node:child_process', 'node:http', 'node:worker_threads'],
  ...['koffi', 'miniflare', 'onnxruntime-node', 'playwright-core', 'wrangler'],
];

const FOLDERS: Readonly<Record<string, Group>> = {
  'test/worker': 'worker',
  'test/origin': 'origin',
  'test/tools/gpu': 'origin',
  'test/e2e': 'e2e',
  'test/tools/fuzz': 'e2e',
};

const IMPORT =
  /^(?:import|export)\s(?!type\s)(?:[^'";]*?\sfrom\s)?'([^']+)'|\bimport\('([^']+)'\)|\bnew URL\('(\.[^']+\.ts)', import\.meta\.url\)/gm;

/** Imports of the files that were read: most files are reached from many tests. */
const read = new Map<string, readonly string[]>();

/** Modules that a file loads: paths from the repository's root, or package names. */
function importsOf(file: string): readonly string[] {
  const known = read.get(file);
  if (known !== undefined) return known;
  const imports = !file.endsWith('.ts') || !existsSync(file) ? [] : readImports(file);
  read.set(file, imports);
  return imports;
}

const readImports = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(IMPORT)].map((match) => {
    const name = (match[1] ?? match[2] ?? match[3])!;
    const own = fileOfPackage(name);
    if (own !== null) return own;
    return name.startsWith('.') ? path.posix.join(path.posix.dirname(file), name) : name;
  });

/** @throws if the file can start something and its folder has no group */
export function groupOf(file: string): Group {
  const reached = new Set([file]);
  for (const module of reached) for (const name of importsOf(module)) reached.add(name);
  const starter = STARTERS.find((name) => reached.has(name));
  if (starter === undefined) return 'unit';
  const folder = Object.keys(FOLDERS).find((name) => file.startsWith(`${name}/`));
  if (folder === undefined)
    throw new Error(
      `${file} reaches '${starter}', but its folder has no group in test/support/run/groups.ts`,
    );
  return FOLDERS[folder]!;
}

/** `npm run test:all` runs every file, `npm test` those without this ending. */
export const isLong = (file: string): boolean => file.endsWith('.long.test.ts');

export const testFiles = (): string[] =>
  globSync('test/**/*.test.ts').map((file) => file.replaceAll(path.sep, '/'));
