/**
 * Runs a check that holds within one minute or day of the real clock. If it fails and the period has changed
 * meanwhile, it runs again.
 * @param period returns the name of the current period
 */
export async function withinOne(
  period: () => string | number,
  run: (attempt: number) => Promise<void>,
): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const begun = period();
    try {
      return await run(attempt);
    } catch (thrown) {
      if (period() === begun) throw thrown;
    }
  }
}
