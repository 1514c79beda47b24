const ATTEMPTS = 3;

/** An object that has too much to do already: asking again at once is more of it. */
const isOverloaded = (thrown: unknown): boolean =>
  (thrown as { readonly overloaded?: unknown } | null)?.overloaded === true;

/**
 * A call of a Durable Object that may be repeated, tried a few times. Each attempt must get its own stub: that of an
 * object which has restarted fails for good.
 */
export async function insistently<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (thrown) {
      if (attempt === ATTEMPTS || isOverloaded(thrown)) throw thrown;
    }
  }
}
