import type { After } from './request-timers.ts';

export interface TimeLimit {
  /** Ends the work, too. */
  readonly signal: AbortSignal;
  readonly after: After;
  readonly ms: number;
}

/**
 * Work under a signal that fires with the given one, and when the time is over.
 * @param errorOf what is thrown in the place of what the work has thrown; told whether its time was over
 */
export async function withTimeLimit<T>(
  { signal, after, ms }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
  errorOf = (thrown: unknown, _late: boolean): unknown => thrown,
): Promise<T> {
  const limit = new AbortController();
  const lift = after(ms, () => limit.abort());
  try {
    return await work(AbortSignal.any([signal, limit.signal]));
  } catch (thrown) {
    throw errorOf(thrown, limit.signal.aborted);
  } finally {
    lift();
  }
}
