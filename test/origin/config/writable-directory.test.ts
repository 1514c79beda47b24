import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { requireDirectory } from '../../../origin/config/writable-directory.ts';
import { newDirectory } from '../../support/new-directory.ts';

const SETTING = 'CONTINUO_STATE_DIR';

const NOBODY = 65_534;

/** Runs work as a user without rights. The tests may run as root, to whom every directory is open. */
function asNobody(work: () => void): void {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

describe('a directory that a setting names', () => {
  test('is created, and only its owner can read it', () => {
    const directory = join(newDirectory(), 'one', 'two');
    requireDirectory(directory, SETTING);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    requireDirectory(directory, SETTING);
  });

  // Node's recursive mkdir never returns in /proc.
  test.each([
    [
      '/proc/continuo',
      /^CONTINUO_STATE_DIR: \/proc\/continuo cannot be used \(ENOENT: [^\n]*\); name a directory/,
    ],
    ['/proc/continuo/below', /^CONTINUO_STATE_DIR: \/proc\/continuo\/below cannot be used \(/],
    ['/dev/null', /\(ENOTDIR: not a directory, [^\n]*\); name a directory that Continuo may write to$/],
    ['/dev/null/below', /\(ENOTDIR: not a directory, /],
  ])('%s is refused at once, with the setting and the reason', (directory, message) => {
    expect(() => requireDirectory(directory, SETTING)).toThrow(message);
  });

  test('is refused without permission, which the message says', () => {
    const closed = process.geteuid?.() === 0 ? newDirectory() : '/root';
    asNobody(() => {
      expect(() => requireDirectory(join(closed, 'below'), SETTING)).toThrow(/\(EACCES: permission denied, /);
    });
  });
});
