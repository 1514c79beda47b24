import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/temporary-directory.ts',
    setupFiles: 'test/support/property-seed.ts',
    reporters: ['default', new ClosingLine()],
    // So long that only what hangs is ended: on one core beside others a test has taken more than two minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // What is waited for is waited for as long as its test may take.
    expect: { poll: { timeout: 290_000 } },
    // Two cores: more workers than that only make real engines wait for each other.
    maxWorkers: 2,
  },
});
