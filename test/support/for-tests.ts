import { beforeAll, beforeEach } from 'vitest';

/** Starts an object that tests share. A hook starts it and stops it after the tests. */
type Start<T> = () => Promise<T>;
interface Stoppable {
  stop(): unknown;
}

/** Returns a proxy of an object that a hook creates later. */
export const later = <T extends object>(made: () => T): T =>
  new Proxy({} as T, {
    get: (_, name) => {
      const value: unknown = Reflect.get(made(), name);
      // Private fields exist only on the object, not on the proxy.
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

/** Starts one object for all tests of a file. */
export const forAllTests = madeBy(beforeAll);

/** Starts a new object for each test of a file. */
export const forEachTest = madeBy(beforeEach);
