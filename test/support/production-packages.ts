import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Returns where `name` lies for a package at `folder`: beside it, or in a node_modules above. */
function resolved(packages: Readonly<Record<string, Locked>>, folder: string, name: string): string | null {
  for (let at = folder; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    const found = path.posix.join(at, 'node_modules', name);
    if (found in packages) return found;
    if (at === '') return null;
  }
}

/** Returns the installed folders, from `root`, of packages and all they depend on, by package-lock.json. */
export function installedFolders(root: string, names: readonly string[]): string[] {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  const found = new Set(names.map((name) => `node_modules/${name}`));
  for (const folder of found) {
    const { dependencies, optionalDependencies } = packages[folder]!;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const inner = resolved(packages, folder, name);
      // Binaries of other platforms are locked, but not installed.
      if (inner !== null && existsSync(path.join(root, inner))) found.add(inner);
    }
  }
  return [...found];
}
