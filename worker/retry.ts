const ATTEMPTS = 3;

/** Retrying an overloaded object would add to its load. */
const isOverloaded = (thrown: unknown): boolean =>
  (thrown as { readonly overloaded?: unknown } | null)?.overloaded === true;

/**
 * Retries an idempotent Durable Object call, at most three attempts. Each attempt must get its own stub, because the stub
 * of an object that has restarted fails permanently.
 */
export async function retry<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (thrown) {
      if (attempt === ATTEMPTS || isOverloaded(thrown)) throw thrown;
    }
  }
}
