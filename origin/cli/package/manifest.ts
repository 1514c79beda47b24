import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { ROOT } from '../start/installation.ts';

/** The name under which the package is published. */
const PACKAGE_NAME = '@continuo/continuo';

/** Workspaces whose modules the package holds, and packages that only a checkout needs. */
const WORKSPACES = [
  'shared',
  'worker',
  'worker/limits',
  'origin',
  'origin/export',
  'origin/grammar',
  'origin/cli',
];
const CHECKOUT_ONLY = /^(@continuo\/|itty-router$|ipaddr\.js$|tlds$)/;

const manifest = z.object({
  version: z.string(),
  description: z.string(),
  license: z.string(),
  dependencies: z.record(z.string(), z.string()).default({}),
});

const read = (folder: string) =>
  manifest.parse(JSON.parse(readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8')));

/** Returns the manifest of the package: one name, and the dependencies of the workspaces in it. */
export function packageManifest() {
  const { description } = read('.');
  const { version, license } = read('origin/cli');
  const all = WORKSPACES.flatMap((folder) => Object.entries(read(folder).dependencies));
  const dependencies: Readonly<Record<string, string>> = Object.fromEntries(
    all.filter(([name]) => !CHECKOUT_ONLY.test(name)).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  return {
    name: PACKAGE_NAME,
    version,
    description,
    license,
    type: 'module',
    bin: { continuo: 'origin/cli/continuo.js' },
    engines: { node: '>=22.18' },
    dependencies,
  };
}
