import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';
import { GroupSequencer } from './test/support/group-sequencer.ts';
import { GROUPS, groupOf, testFiles } from './test/support/groups.ts';

const files = Map.groupBy(testFiles(), groupOf);

export default defineConfig({
  test: {
    projects: GROUPS.map((name) => ({
      extends: true as const,
      test: { name, include: files.get(name) ?? [] },
    })),
    // Files of one worker process share loaded modules; those of e2e also a running system and a browser.
    isolate: false,
    globalSetup: ['test/support/temporary-directory.ts', 'test/support/built-page.ts'],
    sequence: { sequencer: GroupSequencer },
    setupFiles: 'test/support/property-seed.ts',
    reporters: ['default', new ClosingLine()],
    // Ends only tests that hang: on one busy core a test has taken more than two minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // A condition may take as long as its test.
    expect: { poll: { timeout: 290_000 } },
    // One more than the two cores of CI, because many tests wait for processes, pages and timers.
    maxWorkers: 3,
  },
});
