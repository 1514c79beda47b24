import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type FakeOrigin, startFakeOrigin } from './fake-origin.ts';
import { type RunningWorker, startWorker, type WorkerOptions } from './worker.ts';

/** Stands for an object that the hooks have yet to make. */
const later = <T extends object>(made: () => T): T =>
  new Proxy({} as T, {
    get: (_, name) => Reflect.get(made(), name),
    set: (_, name, value) => Reflect.set(made(), name, value),
  });

/** One Worker before a fake origin for all tests of a file; the origin is as new for each. */
export function workerForTests(
  vars: Readonly<Record<string, string>> = {},
  options: WorkerOptions = {},
): { readonly worker: RunningWorker; readonly origin: FakeOrigin } {
  let origin: FakeOrigin;
  let worker: RunningWorker;
  beforeAll(async () => {
    origin = await startFakeOrigin();
    worker = await startWorker(origin, vars, options);
  });
  beforeEach(() => origin.reset());
  afterAll(async () => {
    await worker?.stop();
    await origin?.stop();
  });
  return { worker: later(() => worker), origin: later(() => origin) };
}
