/** Pearson's statistic of observed counts against probabilities that sum to 1. */
export function chiSquare(observed: readonly number[], probabilities: readonly number[]): number {
  const n = observed.reduce((total, count) => total + count, 0);
  return observed.reduce((total, count, i) => {
    const expected = n * probabilities[i]!;
    return total + (count - expected) ** 2 / expected;
  }, 0);
}

/** Exceeded by chance once in a thousand times (Wilson–Hilferty approximation); seeds are fixed. */
export function chiSquareLimit(degrees: number): number {
  const spread = 2 / (9 * degrees);
  return degrees * (1 - spread + 3.0902 * Math.sqrt(spread)) ** 3;
}
