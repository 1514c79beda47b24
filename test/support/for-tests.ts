import { beforeAll, beforeEach } from 'vitest';

/** What tests need to have running: made by a hook, stopped by another, and named where the file begins. */
type Start<T> = () => Promise<T>;
interface Stoppable {
  stop(): unknown;
}

/** Stands for an object that a hook has yet to make. */
const later = <T extends object>(made: () => T): T =>
  new Proxy({} as T, {
    get: (_, name) => {
      const value: unknown = Reflect.get(made(), name);
      // Private fields are there on the object itself alone.
      return typeof value === 'function' ? value.bind(made()) : value;
    },
    set: (_, name, value) => Reflect.set(made(), name, value),
  });

/** One for all tests of a file. */
export function forAllTests<T extends Stoppable>(start: Start<T>): T {
  let made: T;
  beforeAll(async () => {
    made = await start();
    return () => made.stop();
  });
  return later(() => made);
}

/** A new one for each test of a file. */
export function forEachTest<T extends Stoppable>(start: Start<T>): T {
  let made: T;
  beforeEach(async () => {
    made = await start();
    return () => made.stop();
  });
  return later(() => made);
}
