import { defineConfig } from 'vitest/config';

/** Runs the tests of devices where the rest of the project is missing: `npm run gpu -- --parts tests`. */
export default defineConfig({
  test: {
    include: ['test/tools/gpu/*.test.ts'],
    setupFiles: 'test/support/run/set-up-file.ts',
    maxWorkers: 4,
  },
});
