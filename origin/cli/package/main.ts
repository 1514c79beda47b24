import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stagePackage } from './stage.ts';

/** Entry of `npm run package -- [DIR]`: writes the tarball that runs outside a checkout. */

const destination = path.resolve(process.argv[2] ?? '.');
const directory = mkdtempSync(path.join(tmpdir(), 'continuo-package-'));
try {
  await stagePackage(directory);
  const args = ['pack', '--silent', '--pack-destination', destination];
  const name = execFileSync('npm', args, { cwd: directory, encoding: 'utf8' });
  console.log(path.join(destination, name.trim()));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
