/** IEEE 754 binary16, without Float16Array, which Node 22 lacks. */

/** The value of each of the 65,536 bit patterns. */
export const FLOAT16_VALUES = Float32Array.from({ length: 0x1_0000 }, (_, half) => {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
});

/** Bit patterns, rounded to nearest even; beyond ± 65,504 infinity. */
export function toFloat16(values: Float32Array): Uint16Array {
  const result = new Uint16Array(values.length);
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const sign = (word >>> 16) & 0x8000;
    const magnitude = word & 0x7fff_ffff;
    if (magnitude >= 0x4780_0000) result[i] = sign | (magnitude > 0x7f80_0000 ? 0x7e00 : 0x7c00);
    else if (magnitude < 0x3880_0000) result[i] = sign | subnormal(Math.abs(values[i]!));
    else result[i] = sign | ((magnitude + 0xfff + ((magnitude >>> 13) & 1) - 0x3800_0000) >>> 13);
  }
  return result;
}

/** In [0.5, 1) single precision has a grid of 2⁻²⁴, as subnormal numbers of half precision have. */
const subnormal = (magnitude: number): number => (Math.fround(magnitude + 0.5) - 0.5) * 2 ** 24;
