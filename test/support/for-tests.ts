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

type Hook = (start: () => Promise<() => unknown>) => void;

const madeBy =
  (hook: Hook) =>
  <T extends Stoppable>(start: Start<T>): T => {
    let made: T;
    hook(async () => {
      made = await start();
      return () => made.stop();
    });
    return later(() => made);
  };

/** One for all tests of a file. */
export const forAllTests = madeBy(beforeAll);

/** A new one for each test of a file. */
export const forEachTest = madeBy(beforeEach);
