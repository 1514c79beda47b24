/** Ends tests that hang. On two quiet cores a test needs at most a third of it. */
export const TEST_LIMIT_MS = 60_000;

/** Conditions end before their test, so that the report says what was waited for. */
export const WAIT_LIMIT_MS = TEST_LIMIT_MS / 2;

/** Files and folders whose tests and hooks may take longer, each for its reason. */
export const LONGER_MS: Readonly<Record<string, number>> = {
  // The processor compiles and computes the kernels of a graphics card.
  'test/e2e/site/run-here-webgpu.long.test.ts': 300_000,
  // The first run of a device compiles its kernels.
  'test/tools/gpu/': 600_000,
  // Each workload is computed twice.
  'test/origin/engine/runs-ahead.long.test.ts': 600_000,
  // The first test of a process waits for the start of the system and of a browser, too.
  'test/e2e/site/': 120_000,
  // They wait until processes have restarted after each of several kills, and until the ledger agrees.
  'test/e2e/kills.test.ts': 180_000,
  'test/e2e/kills.long.test.ts': 180_000,
  // They wait until the slices of killed isolates expire. BATCH_KILLS sets a number of kills.
  'test/worker/expiries.long.test.ts': 7_200_000,
  // FUZZ_BODIES sets the number of bodies.
  'test/worker/dialects/fuzz.test.ts': 7_200_000,
  // npm installs a tarball, and a product starts from it.
  'test/e2e/package.long.test.ts': 180_000,
};
