/** Runs `then` after `ms` milliseconds, unless the returned function is called before. */
export type After = (ms: number, then: () => void) => () => void;

interface TimeLimit {
  /** Also aborts the work. */
  readonly signal: AbortSignal;
  readonly after: After;
  readonly ms: number;
}

/**
 * Runs `work` with a signal that aborts with the given one, and after `ms` milliseconds.
 * @param errorOf maps what `work` throws; `late` = the time limit was reached
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

/** Returns the result of `work` within `ms` milliseconds, else null. @throws what `work` throws by then */
export async function inTime<T>(
  work: Promise<T>,
  { after, ms }: Pick<TimeLimit, 'after' | 'ms'>,
): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const cancel = after(ms, () => late.resolve(null));
  return Promise.race([work, late.promise]).finally(cancel);
}

/**
 * Returns the result of `work`.
 * @throws what `work` throws, or an Error if it takes longer than `ms` milliseconds
 */
export function requireInTime<T>(work: Promise<T>, limit: Pick<TimeLimit, 'after' | 'ms'>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = limit.after(limit.ms, () => late.reject(new Error('late')));
  return Promise.race([work, late.promise]).finally(cancel);
}
