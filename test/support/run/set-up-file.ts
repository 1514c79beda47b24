import fc from 'fast-check';
import { afterAll, beforeEach, expect, vi } from 'vitest';
import { runs, TEST_SEED } from '../random.ts';
import { takeStartMs } from './shared-starts.ts';
import { LONGER_MS, TEST_LIMIT_MS } from './time-limits.ts';

/**
 * Runs before each test file: gives property tests the seed of the run and its number of cases, and the file
 * its time limit. No test leaves stubs or replaced timers to the next one. After the file, the report of slow
 * files learns what the file started for others.
 *
 * @throws if the timers are not Node's: Vitest restores spies after a file, also spies of replaced timers.
 */

if ('clock' in setTimeout) throw new Error('the file before has left a replaced setTimeout');

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: TEST_SEED, numRuns: runs(100) });

const file = expect.getState().testPath!.replaceAll('\\', '/');
const [, longer] = Object.entries(LONGER_MS).find(([name]) => file.includes(`/${name}`)) ?? [];
const limit = longer ?? TEST_LIMIT_MS;
vi.setConfig({ testTimeout: limit, hookTimeout: limit });

// What a test registers to be called at its end is called before this.
beforeEach(({ onTestFinished }) =>
  onTestFinished(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  }),
);

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the used fixtures from it
afterAll(({}, suite) => {
  suite.file.meta.startMs = takeStartMs();
});
