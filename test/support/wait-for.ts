import { vi } from 'vitest';
import { WAIT_LIMIT_MS } from './run/time-limits.ts';

/** Repeats a check until it does not throw. On a busy machine, the second of `vi.waitFor` is too short. */
export const waitFor = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: WAIT_LIMIT_MS });
