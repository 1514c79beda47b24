type ErrorClass = abstract new (...args: never[]) => Error;

/** Returns what `run` returns, or null if it throws an error of this class. */
export function nullOn<T>(expected: ErrorClass, run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof expected) return null;
    throw error;
  }
}
