import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/**
 * Gives all tests one temporary directory, which also serves as their home, and removes it after the run.
 * Tests therefore do not depend on the user's home directory.
 */

let directory: string;

export function setup(): void {
  directory = mkdtempSync(path.join(tmpdir(), 'continuo-tests-'));
  // The processes of the test files inherit these variables.
  process.env.TMPDIR = directory;
  process.env.HOME = directory;
  // Node compiles each module once for all of them.
  process.env.NODE_COMPILE_CACHE = path.join(directory, 'compile-cache');
}

export function teardown(): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
