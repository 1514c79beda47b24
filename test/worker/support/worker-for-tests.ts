import { afterEach, beforeEach } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
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
