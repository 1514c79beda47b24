import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Creates an empty directory. It is removed after the run. */
export const newDirectory = (): string => mkdtempSync(path.join(tmpdir(), 'test-'));
