import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { beforeAll } from 'vitest';
import { packageManifest } from '../../origin/cli/package/manifest.ts';
import { stagePackage } from '../../origin/cli/package/stage.ts';
import { buildSite } from '../../origin/cli/start/local-worker.ts';
import { newDirectory } from '../support/new-directory.ts';

export const PAGE = 'worker/site/dist/public/index.html';

/**
 * Installs the package for the tests of a file without the network: it, and only the packages that its
 * manifest names.
 */
export function stagedPackage() {
  const app = newDirectory();
  const { name, bin, dependencies } = packageManifest();
  const folder = path.join(app, 'node_modules', name);
  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
    // As `npm start` leaves the page.
    await buildSite();
    chmodSync(PAGE, 0o600);
    await stagePackage(folder);
    for (const dependency of Object.keys(dependencies)) {
      const link = path.join(app, 'node_modules', dependency);
      mkdirSync(path.dirname(link), { recursive: true });
      symlinkSync(path.resolve('node_modules', dependency), link);
    }
  });
  return { folder, command: path.join(folder, bin.continuo), dependencies };
}
