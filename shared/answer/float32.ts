import { LOWEST_LOGPROB } from '../logprob.ts';

/** Below it a float32 has fewer significant bits. */
const SMALLEST_NORMAL = 2 ** -126;

/** Powers of ten that doubles hold exactly. */
const POWERS: readonly number[] = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));

/**
 * `value` rounded to about `digits` significant digits. An integer divided by an exact power of ten is the double that
 * the decimal denotes, and many times faster to come by than through text.
 */
function rounded(value: number, digits: number, exponent: number): number {
  const power = POWERS[digits - 1 - exponent];
  if (power === undefined) return Number(value.toPrecision(digits));
  return (Math.sign(value) * Math.round(Math.abs(value) * power)) / power;
}

/** The shortest decimal that still denotes the same float32; nine digits always do. */
export function shortestFloat32(value: number): number {
  const single = Math.fround(value);
  const size = Math.abs(value);
  if (size === 0) return 0;
  const exponent = Math.floor(Math.log10(size));
  // Five digits can name only one normal float32 each, so that a shorter name would be found among them.
  for (let digits = size < SMALLEST_NORMAL ? 1 : 5; digits < 9; digits += 1) {
    const short = rounded(value, digits, exponent);
    if (Math.fround(short) === single) return short;
  }
  return Number(value.toPrecision(9));
}

/** A logprob as answers show it. */
export function shownLogprob(logprob: number): number {
  return logprob > LOWEST_LOGPROB ? shortestFloat32(logprob) : LOWEST_LOGPROB;
}
