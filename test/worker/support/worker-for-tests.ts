import { afterEach, beforeEach, test } from 'vitest';
import { forAllTests, later } from '../../support/for-tests.ts';
import { starting } from '../../support/run/shared-starts.ts';
import { ADMIN_KEY_SHA256 } from '../admin/admin-client.ts';
import { type FakeOrigin, startFakeOrigin } from './fake-origin.ts';
import { type RunningWorker, startWorker, type WorkerOptions } from './worker.ts';

/** Resets the origin before each test, and fails a test in which the origin fails. */
export function asNewForEach(origin: FakeOrigin): void {
  beforeEach(() => origin.reset());
  afterEach(() => {
    for (const fault of origin.faults.splice(0)) throw fault;
  });
}

/** Starts one Worker and a fake origin for all tests of a file. */
export function workerForTests(
  vars: Readonly<Record<string, string>> = {},
  options: WorkerOptions = {},
): { readonly worker: RunningWorker; readonly origin: FakeOrigin } {
  const origin = forAllTests(startFakeOrigin);
  const worker = forAllTests(() => startWorker(origin, vars, options));
  asNewForEach(origin);
  return { worker, origin };
}

interface WorkerAndOrigin {
  readonly worker: RunningWorker;
  readonly origin: FakeOrigin;
}

const sharedTest = test.extend<{ shared: WorkerAndOrigin }>({
  shared: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the used fixtures from it
    async ({}, use) => {
      const origin = await startFakeOrigin();
      const worker = await starting(() => startWorker(origin, { ADMIN_KEY_SHA256 }));
      await use({ worker, origin });
      await worker.stop();
      await origin.stop();
    },
    { scope: 'worker' },
  ],
});

/**
 * Returns a Worker and a fake origin that the files of one worker process of vitest share: a start takes a
 * second. For tests that leave nothing in the Worker that another file could notice, and count nothing that
 * it keeps.
 */
export function sharedWorker(): WorkerAndOrigin {
  let made: WorkerAndOrigin;
  sharedTest.beforeAll(({ shared }) => {
    made = shared;
  });
  const origin = later(() => made.origin);
  asNewForEach(origin);
  return { worker: later(() => made.worker), origin };
}
