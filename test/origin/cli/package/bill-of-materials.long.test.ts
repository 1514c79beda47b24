import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { packageManifest } from '../../../../origin/cli/package/manifest.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { installedFolders } from '../../../support/production-packages.ts';

const PARTS = ['tarball', 'origin', 'edge'] as const;

const run = (...args: string[]) => spawnSync(process.execPath, args, { encoding: 'utf8' });

function billOf(part: string): string {
  const { status, stdout, stderr } = run('.ci/bill-of-materials.js', part);
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

const namesIn = (bill: string): string[] =>
  (JSON.parse(bill) as { readonly components: { readonly name: string }[] }).components.map(
    ({ name }) => name,
  );

function checkLicences(bill: string) {
  const folder = newDirectory();
  const file = path.join(folder, 'bill.json');
  writeFileSync(file, bill);
  return run('.ci/licences.js', file);
}

test('the bill of materials of the tarball lists all that npm installs with it, and all that is bundled', () => {
  const names = new Set(namesIn(billOf('tarball')));
  const installed = installedFolders('.', Object.keys(packageManifest().dependencies)).map((folder) =>
    folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length),
  );
  expect(installed.length).toBeGreaterThan(50);
  expect(installed.filter((name) => !names.has(name))).toEqual([]);
  // Tests and build tools need these, too, so npm's own list of what is not for development lacks them.
  for (const name of ['zod', 'undici', 'ws', 'itty-router', 'tlds', 'preact']) expect(names).toContain(name);
});

test('no build tool of the page ships', () => {
  for (const part of PARTS) {
    const tools = namesIn(billOf(part)).filter((name) =>
      /^(vite|rolldown|lightningcss|postcss|vitest)$/.test(name),
    );
    expect(tools).toEqual([]);
  }
});

test.each(PARTS)('all licences in the %s are accepted', (part) => {
  expect(checkLicences(billOf(part))).toMatchObject({ status: 0, stderr: '' });
});

test('a licence that is not accepted fails the scan with the name of its package', () => {
  const bill = JSON.parse(billOf('origin')) as { components: { name: string; licenses: unknown }[] };
  const zod = bill.components.find(({ name }) => name === 'zod')!;
  zod.licenses = [{ license: { id: 'MPL-2.0' } }];
  const { status, stderr } = checkLicences(JSON.stringify(bill));
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^zod@\S+: licence 'MPL-2.0' is not accepted\n$/),
  ]);
});
