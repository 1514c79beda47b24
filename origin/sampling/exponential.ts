/** Below, e^x is no normal float64. */
export const LOWEST_EXPONENT = -708;

const STEPS_PER_UNIT = 64 * Math.LOG2E;
const UNIT_PER_STEP = Math.LN2 / 64;
/** 2^(−i/64). */
const FRACTIONS = Float64Array.from({ length: 64 }, (_, i) => 2 ** (-i / 64));
/** 2^−i down to the smallest normal number. */
const POWERS = Float64Array.from({ length: 1023 }, (_, i) => 2 ** -i);

/**
 * e^x for x ≤ 0 by table and polynomial: about three times as fast as Math.exp. It uses IEEE multiplication
 * and addition only, so it has the same bits on every machine.
 *
 * With n the nearest integer to −64 x / ln 2, e^x = 2^−⌊n/64⌋ · 2^(−(n mod 64)/64) · e^r and |r| ≤ ln 2 /
 * 128. The last factor is its Taylor series. Relative error below 3·10⁻¹³ over the whole range; 0 if the
 * result would be subnormal.
 */
export function exponential(x: number): number {
  if (x < LOWEST_EXPONENT) return 0;
  const n = (0.5 - x * STEPS_PER_UNIT) | 0;
  const r = x + n * UNIT_PER_STEP;
  const series = 1 + r * (1 + r * (0.5 + r * (1 / 6 + r * (1 / 24))));
  return FRACTIONS[n & 63]! * POWERS[n >> 6]! * series;
}
