import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/run/closing-line.ts';
import { GroupSequencer } from './test/support/run/group-sequencer.ts';
import { GROUPS, groupOf, isLong, testFiles } from './test/support/run/groups.ts';
import { SlowFiles } from './test/support/run/slow-files.ts';
import { TEST_LIMIT_MS, WAIT_LIMIT_MS } from './test/support/run/time-limits.ts';
import { requestFieldsModule } from './worker/site/build/request-fields.ts';

/** Returns the groups with their files. The mode `quick`, that of `npm test`, has no `*.long.test.ts`. */
export function projectsOf(mode: string) {
  const listed = testFiles().filter((file) => !(mode === 'quick' && isLong(file)));
  const files = Map.groupBy(listed, groupOf);
  return GROUPS.map((name) => ({ extends: true as const, test: { name, include: files.get(name) ?? [] } }));
}

export default defineConfig(({ mode }) => {
  const quick = mode === 'quick';
  return {
    // Components of the page import it.
    plugins: [requestFieldsModule()],
    test: {
      projects: projectsOf(mode),
      env: { TEST_CASES: quick ? 'tenth' : 'all' },
      // Files of one worker process share loaded modules; those of e2e also a running system and a browser.
      isolate: false,
      globalSetup: ['test/support/run/temporary-directory.ts', 'test/support/run/built-page.ts'],
      sequence: { sequencer: GroupSequencer },
      setupFiles: 'test/support/run/set-up-file.ts',
      reporters: ['default', ...(quick ? [new SlowFiles()] : []), new ClosingLine()],
      testTimeout: TEST_LIMIT_MS,
      hookTimeout: TEST_LIMIT_MS,
      expect: { poll: { timeout: WAIT_LIMIT_MS } },
      // One more than the two cores of CI, because many tests wait for processes, pages and timers.
      maxWorkers: 3,
    },
  };
});
