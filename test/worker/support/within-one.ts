/**
 * For what holds within one minute, or one day, of a clock that no test can hold: where it failed and the period ended in
 * the middle, it is begun anew.
 * @param period what the present one is called
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
