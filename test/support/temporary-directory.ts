import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What tests leave among the system's temporary files lies in one directory, which goes when they have ended. */

let directory: string;

export function setup(): void {
  directory = mkdtempSync(path.join(tmpdir(), 'continuo-tests-'));
  // Test files run in processes that inherit it.
  process.env.TMPDIR = directory;
}

export function teardown(): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}
