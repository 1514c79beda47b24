import { defineConfig } from 'vitest/config';
import { ClosingLine } from '../../support/run/closing-line.ts';

/** Runs unmodified third-party clients against one running system: `npm run test:clients`. */
export default defineConfig({
  test: {
    include: ['test/tools/clients/**/*.clients.ts'],
    globalSetup: ['test/tools/clients/setup.ts'],
    reporters: ['default', new ClosingLine()],
    testTimeout: 180_000,
    // The first run installs the Python clients.
    hookTimeout: 900_000,
    // One file at a time, because some tests wait until the origin is idle.
    fileParallelism: false,
  },
});
