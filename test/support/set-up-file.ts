import fc from 'fast-check';
import { expect, vi } from 'vitest';
import { runs, TEST_SEED } from './random.ts';
import { LONGER_MS, TEST_LIMIT_MS } from './time-limits.ts';

/**
 * Runs before each test file: gives property tests the seed of the run and its number of cases, and the file
 * its time limit.
 */

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: TEST_SEED, numRuns: runs(100) });

const file = expect.getState().testPath!.replaceAll('\\', '/');
const [, longer] = Object.entries(LONGER_MS).find(([name]) => file.endsWith(`/${name}`)) ?? [];
vi.setConfig({ testTimeout: longer ?? TEST_LIMIT_MS });
