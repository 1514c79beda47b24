import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newDirectory } from '../../support/new-directory.ts';

/** What the command says before it can run: without packages, on an old Node, on one that warns. */

const BIN = 'origin/cli/continuo.js';

/** Copies the bin to a checkout without packages, or with an empty folder of them. */
function copyBin(hasPackages: boolean): string {
  const root = newDirectory();
  mkdirSync(path.join(root, 'origin/cli'), { recursive: true });
  writeFileSync(path.join(root, 'package.json'), JSON.stringify({ type: 'module' }));
  cpSync(BIN, path.join(root, BIN));
  if (hasPackages) mkdirSync(path.join(root, 'node_modules'));
  return path.join(root, BIN);
}

/** Runs the bin as another version of Node would. */
const runAs = (version: string, bin: string) =>
  spawnSync(
    process.execPath,
    [
      '--import',
      `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`,
      bin,
    ],
    { encoding: 'utf8' },
  );

test.each(['20.20.2', '24.21.0'])('Node %s before npm ci is told to run it', (version) => {
  const { status, stderr } = runAs(version, copyBin(false));
  expect(status).toBe(1);
  expect(stderr).toBe('continuo: The packages of this checkout are not installed; run npm ci first.\n');
});

test.each(['20.20.2', '22.18.0', '23.11.1'])('a checkout says that Node %s is too old', (version) => {
  const { status, stderr } = runAs(version, copyBin(true));
  expect(status).toBe(1);
  expect(stderr).toBe(`continuo: Node ${version} is too old; install Node 24.0 or later.\n`);
});

test('a lock of SQLite prints no warning that SQLite is experimental', () => {
  const lock = path.resolve('origin/hub/fetch/file-lock.ts');
  const file = path.join(newDirectory(), 'lock');
  const code = `
    const load = process.getBuiltinModule;
    process.getBuiltinModule = (name) => {
      process.emitWarning('SQLite is an experimental feature', 'ExperimentalWarning');
      return load(name);
    };
    const { tryFileLock } = await import(${JSON.stringify(lock)});
    tryFileLock(${JSON.stringify(file)}).close();
    process.emitWarning('heard');`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    encoding: 'utf8',
  });
  expect(stderr).toContain('heard');
  expect(stderr).not.toContain('SQLite');
});

test('npm run package refuses what it cannot write to before it builds', () => {
  const file = path.join(newDirectory(), 'file');
  writeFileSync(file, '');
  const pack = (...args: string[]) =>
    spawnSync(process.execPath, ['origin/cli/package/main.ts', ...args], { encoding: 'utf8' });
  expect(pack(file).stderr).toMatch(/^DIR: [^\n]* cannot be used [^\n]*\n$/);
  for (const args of [['--help'], ['a', 'b']]) {
    const { status, stderr } = pack(...args);
    expect([status, stderr]).toEqual([1, 'Usage: npm run package -- [DIR]\n']);
  }
});
