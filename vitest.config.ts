import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/temporary-directory.ts',
    reporters: ['default', new ClosingLine()],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Two cores: more workers than that only make real engines wait for each other.
    maxWorkers: 2,
  },
});
