import { test } from 'vitest';
import { later } from './for-tests.ts';
import { starting } from './run/shared-starts.ts';
import { type System, startSystem } from './system.ts';

/**
 * `test` of vitest with the product as `npm start` runs it. Each worker process of vitest starts one and runs
 * its files one after another, so that no other file uses the system at the same time. Tests that count take
 * the difference, and tenants have names of their own. Tests that change settings or the state directory
 * start a system of their own.
 */
export const systemTest = test.extend<{ system: System }>({
  system: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the used fixtures from it
    async ({}, use) => {
      const system = await starting(startSystem);
      await use(system);
      await system.stop();
    },
    { scope: 'worker' },
  ],
});

/** Returns the system of `systemTest` for the tests and functions of a file. */
export function sharedSystem(): System {
  let shared: System;
  systemTest.beforeAll(({ system }) => {
    shared = system;
  });
  return later(() => shared);
}
