import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { lockStateDirectory } from '../../../../origin/cli/start/state-lock.ts';
import { newDirectory } from '../../../support/new-directory.ts';

const MODULE = path.resolve(import.meta.dirname, '../../../../origin/cli/start/state-lock.ts');

/** Starts a process that holds the lock until it is killed. */
async function holderOf(directory: string) {
  const code = `
    import { lockStateDirectory } from ${JSON.stringify(MODULE)};
    globalThis.lock = lockStateDirectory(${JSON.stringify(directory)}, '');
    console.log('locked');
    setInterval(() => undefined, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

test('a second start on a state directory names the process that holds it; a killed holder holds nothing', async () => {
  const directory = path.join(newDirectory(), 'new');
  const holder = await holderOf(directory);
  expect(() => lockStateDirectory(directory, '--state')).toThrow(
    `The state directory ${directory} is in use by process ${holder.pid}. Stop it, or set --state to another directory.`,
  );
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  using _lock = lockStateDirectory(directory, '--state');
  expect(readFileSync(path.join(directory, 'launcher.pid'), 'utf8')).toBe(`${process.pid}\n`);
});

test('a released directory can be locked again', () => {
  const directory = newDirectory();
  lockStateDirectory(directory, '--state')[Symbol.dispose]();
  lockStateDirectory(directory, '--state')[Symbol.dispose]();
});

test('a directory that cannot be created is one line that names the setting', () => {
  const file = path.join(newDirectory(), 'file');
  writeFileSync(file, '');
  // Node's recursive mkdir never returns in /proc.
  for (const directory of [file, path.join(file, 'below'), '/proc/continuo'])
    expect(() => lockStateDirectory(directory, 'CONTINUO_STATE_DIR')).toThrow(
      `CONTINUO_STATE_DIR: ${directory} cannot be used (`,
    );
});

test('a lock file that cannot be opened is named', () => {
  const directory = newDirectory();
  const lock = path.join(directory, 'launcher.lock');
  mkdirSync(lock);
  expect(() => lockStateDirectory(directory, 'CONTINUO_STATE_DIR')).toThrow(`cannot lock ${lock}: `);
});
