import { afterEach, beforeEach } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { type FakeOrigin, startFakeOrigin } from './fake-origin.ts';
import { type RunningWorker, startWorker, type WorkerOptions } from './worker.ts';

/** The origin is as new for each test, and fails those in which it fails. */
export function asNewForEach(origin: FakeOrigin): void {
  beforeEach(() => origin.reset());
  afterEach(() => {
    for (const fault of origin.faults.splice(0)) throw fault;
  });
}

/** One Worker before a fake origin for all tests of a file. */
export function workerForTests(
  vars: Readonly<Record<string, string>> = {},
  options: WorkerOptions = {},
): { readonly worker: RunningWorker; readonly origin: FakeOrigin } {
  const origin = forAllTests(startFakeOrigin);
  const worker = forAllTests(() => startWorker(origin, vars, options));
  asNewForEach(origin);
  return { worker, origin };
}
