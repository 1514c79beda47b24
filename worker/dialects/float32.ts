/** What stands for −∞ and everything below it: JSON has no infinities. */
export const LOWEST_LOGPROB = -9_999;

/** Below it a float32 has fewer significant bits. */
const SMALLEST_NORMAL = 2 ** -126;

/** The shortest decimal that still denotes the same float32; nine digits always do. */
export function shortestFloat32(value: number): number {
  const single = Math.fround(value);
  // Five digits can name only one normal float32 each, so that a shorter name would be found among them.
  const fewest = Math.abs(value) < SMALLEST_NORMAL ? 1 : 5;
  for (let digits = fewest; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === single) return short;
  }
  return Number(value.toPrecision(9));
}

/** A logprob as answers show it. */
export function shownLogprob(logprob: number): number {
  return logprob > LOWEST_LOGPROB ? shortestFloat32(logprob) : LOWEST_LOGPROB;
}
