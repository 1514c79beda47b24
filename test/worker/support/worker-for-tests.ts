import { beforeEach } from 'vitest';
import { forAllTests } from '../../support/for-tests.ts';
import { type FakeOrigin, startFakeOrigin } from './fake-origin.ts';
import { type RunningWorker, startWorker, type WorkerOptions } from './worker.ts';

/** One Worker before a fake origin for all tests of a file; the origin is as new for each. */
export function workerForTests(
  vars: Readonly<Record<string, string>> = {},
  options: WorkerOptions = {},
): { readonly worker: RunningWorker; readonly origin: FakeOrigin } {
  const origin = forAllTests(startFakeOrigin);
  const worker = forAllTests(() => startWorker(origin, vars, options));
  beforeEach(() => origin.reset());
  return { worker, origin };
}
