import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireDirectory } from '@continuo/origin/config/writable-directory.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { stagePackage } from './stage.ts';

/** Entry of `npm run package -- [DIR]`: writes the tarball that runs outside a checkout. */

async function writePackage(folder: string): Promise<string> {
  const destination = path.resolve(folder);
  // Known before the build, which takes a minute.
  requireDirectory(destination, 'DIR');
  const directory = mkdtempSync(path.join(tmpdir(), 'continuo-package-'));
  try {
    await stagePackage(directory);
    const args = ['pack', '--silent', '--pack-destination', destination];
    const name = execFileSync('npm', args, { cwd: directory, encoding: 'utf8' });
    return path.join(destination, name.trim());
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const [folder = '.', ...others] = process.argv.slice(2);
try {
  if (others.length > 0 || folder.startsWith('-')) throw new Error('Usage: npm run package -- [DIR]');
  console.log(await writePackage(folder));
} catch (error) {
  console.error(errorMessage(error));
  process.exitCode = 1;
}
