import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * What tests leave among the system's temporary files, or at home, lies in one directory, which goes when they have ended.
 * Whose home it is, and whether it can be read, is nothing to them.
 */

let directory: string;

export function setup(): void {
  directory = mkdtempSync(path.join(tmpdir(), 'continuo-tests-'));
  // Test files run in processes that inherit it.
  process.env.TMPDIR = directory;
  process.env.HOME = directory;
}

export function teardown(): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
