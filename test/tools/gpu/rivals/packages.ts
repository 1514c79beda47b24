import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';

/** The file of a package in a public registry. */
export interface Package {
  readonly registry: 'npm' | 'pypi';
  readonly name: string;
  readonly version: string;
  /** SHA-256 of the file. */
  readonly sha256: string;
}

/** Downloads a package by the ordinary client of its registry. */
const DOWNLOAD: Readonly<Record<Package['registry'], (named: Package) => readonly [string, ...string[]]>> = {
  npm: ({ name, version }) => ['npm', 'pack', '--silent', `${name}@${version}`],
  pypi: ({ name, version }) => [
    ...(['python3', '-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:'] as const),
    ...['--platform', 'manylinux2014_x86_64', `${name}==${version}`],
  ],
};

/**
 * Downloads a package and unpacks it to a new directory, which exists only once it is whole.
 * @throws Error if its checksum differs
 */
export function unpackPackage(wanted: Package, directory: string): void {
  const work = mkdtempSync(`${directory}-`);
  try {
    const [program, ...args] = DOWNLOAD[wanted.registry](wanted);
    execFileSync(program, args, { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
    const archive = path.join(work, globSync('*', { cwd: work })[0] ?? '');
    const sha256 = createHash('sha256').update(readFileSync(archive)).digest('hex');
    if (sha256 !== wanted.sha256)
      throw new Error(`${wanted.name} ${wanted.version} has the SHA-256 ${sha256}, not ${wanted.sha256}`);
    const unpacked = path.join(work, 'unpacked');
    mkdirSync(unpacked);
    if (wanted.registry === 'npm') execFileSync('tar', ['-xzf', archive, '-C', unpacked]);
    else execFileSync('python3', ['-m', 'zipfile', '-e', archive, unpacked]);
    renameSync(unpacked, directory);
  } finally {
    rmSync(work, { recursive: true });
  }
}
