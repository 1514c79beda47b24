import { LOWEST_LOGPROB } from '@continuo/shared/logprob.ts';

/** Smaller values have fewer significant bits in float32. */
const SMALLEST_NORMAL = 2 ** -126;

/** Powers of ten that a double represents exactly. */
const POWERS: readonly number[] = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

/**
 * Rounds `value` to about `digits` significant digits. An integer divided by an exact power of ten is the
 * nearest double of that decimal, and this is many times faster than a conversion through text.
 */
function rounded(value: number, digits: number, exponent: number): number {
  const power = POWERS[digits - 1 - exponent];
  if (power === undefined) return Number(value.toPrecision(digits));
  return (Math.sign(value) * Math.round(Math.abs(value) * power)) / power;
}

/** Returns the shortest decimal that converts to the same float32; nine digits always suffice. */
export function shortestFloat32(value: number): number {
  const single = Math.fround(value);
  const size = Math.abs(value);
  if (size === 0) return 0;
  const exponent = Math.floor(Math.log10(size));
  // At five digits each normal float32 has at most one decimal, so a shorter one is found here too.
  for (let digits = size < SMALLEST_NORMAL ? 1 : 5; digits < 9; digits += 1) {
    const short = rounded(value, digits, exponent);
    if (Math.fround(short) === single) return short;
  }
  return Number(value.toPrecision(9));
}

/** Formats a logprob for the response; LOWEST_LOGPROB stands for −∞. */
export function shownLogprob(logprob: number): number {
  return logprob > LOWEST_LOGPROB ? shortestFloat32(logprob) : LOWEST_LOGPROB;
}
