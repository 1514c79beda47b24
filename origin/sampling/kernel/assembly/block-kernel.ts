// Block reductions over a row of logits, in AssemblyScript (a TypeScript-like language for WebAssembly).
// A block is 128 consecutive float32 logits. All arguments named `row`, `results`, `maxima` and `ids` are
// byte addresses. Every result is a function of the row's bits only: IEEE operations in a fixed order.
// Build: npm run build:kernel. The result is committed in block-kernel-binary.ts.

const BLOCK_BYTES: usize = 512;
const VECTOR_BYTES: usize = 16;

/** Writes the largest logit of each block. Returns 0 if any logit is NaN or +∞. */
export function maxima(row: usize, blocks: i32, results: usize): i32 {
  const infinity = f32x4.splat(Infinity);
  let valid = i32x4.splat(-1);
  for (; blocks > 0; blocks--) {
    let max = f32x4.splat(-Infinity);
    // Two chains of maxima: each step waits for the one before it.
    let max2 = max;
    for (const end = row + BLOCK_BYTES; row < end; row += 2 * VECTOR_BYTES) {
      const x = v128.load(row);
      const y = v128.load(row, VECTOR_BYTES);
      max = f32x4.pmax(max, x);
      max2 = f32x4.pmax(max2, y);
      valid = v128.and(valid, v128.and(f32x4.lt(x, infinity), f32x4.lt(y, infinity)));
    }
    max = f32x4.pmax(max, max2);
    max = f32x4.pmax(max, v128.shuffle<f32>(max, max, 2, 3, 0, 1));
    max = f32x4.pmax(max, v128.shuffle<f32>(max, max, 1, 0, 3, 2));
    f32.store(results, f32x4.extract_lane(max, 0));
    results += 4;
  }
  return i32x4.all_true(valid) ? 1 : 0;
}

/**
 * Writes two float32 per block: Σ 2^x and Σ 2^x · x, with x = (z − highest) · coldness / ln 2.
 * Relative error of a term: about 2·10⁻⁷ plus the rounding of x.
 */
export function sums(row: usize, blocks: i32, results: usize, highest: f32, coldness: f32): void {
  const top = f32x4.splat(highest);
  const scale = f32x4.splat(coldness * <f32>Math.LOG2E);
  for (; blocks > 0; blocks--) {
    let sum = f32x4.splat(0);
    let moment = f32x4.splat(0);
    for (const end = row + BLOCK_BYTES; row < end; row += 4 * VECTOR_BYTES) {
      // Four at a time: the steps of one power wait for each other.
      const x0 = exponent(v128.load(row), top, scale);
      const x1 = exponent(v128.load(row, VECTOR_BYTES), top, scale);
      const x2 = exponent(v128.load(row, 2 * VECTOR_BYTES), top, scale);
      const x3 = exponent(v128.load(row, 3 * VECTOR_BYTES), top, scale);
      const p0 = power(x0);
      const p1 = power(x1);
      const p2 = power(x2);
      const p3 = power(x3);
      sum = f32x4.add(p3, f32x4.add(p2, f32x4.add(p1, f32x4.add(p0, sum))));
      moment = f32x4.add(f32x4.mul(p0, x0), moment);
      moment = f32x4.add(f32x4.mul(p1, x1), moment);
      moment = f32x4.add(f32x4.mul(p2, x2), moment);
      moment = f32x4.add(f32x4.mul(p3, x3), moment);
    }
    f32.store(results, acrossLanes(sum));
    f32.store(results, acrossLanes(moment), 4);
    results += 8;
  }
}

// Loaded from memory: the compiler would otherwise rebuild the vectors for every use (25 % slower).
const CONSTANTS = memory.data<f32>([
  12582912, // 1.5 · 2^23: added to a small number, it leaves the nearest integer in the low bits
  -125, // The lowest power of two in use: float32 has hardly any smaller ones
  // 2^f for |f| ≤ ½ by falling powers of f, within 2·10⁻⁷ (minimax)
  0.0013276408,
  0.009675541,
  0.055507135,
  0.2402212,
  0.69314694,
  1.0000001,
]);

// @ts-expect-error: decorator
@inline
function constant(index: i32): v128 {
  return v128.load32_splat(CONSTANTS + 4 * index);
}

// @ts-expect-error: decorator
@inline
function exponent(logits: v128, top: v128, scale: v128): v128 {
  return f32x4.pmax(f32x4.mul(f32x4.sub(logits, top), scale), constant(1));
}

/** 2^x = 2^n · 2^f with n the nearest integer to x: the polynomial's bits plus n in the exponent. */
// @ts-expect-error: decorator
@inline
function power(x: v128): v128 {
  const rounded = f32x4.add(x, constant(0));
  const f = f32x4.sub(x, f32x4.sub(rounded, constant(0)));
  let p = f32x4.mul(constant(2), f);
  p = f32x4.mul(f32x4.add(p, constant(3)), f);
  p = f32x4.mul(f32x4.add(p, constant(4)), f);
  p = f32x4.mul(f32x4.add(p, constant(5)), f);
  p = f32x4.mul(f32x4.add(p, constant(6)), f);
  p = f32x4.add(p, constant(7));
  return i32x4.add(p, i32x4.shl(rounded, 23));
}

// @ts-expect-error: decorator
@inline
function acrossLanes(sum: v128): f32 {
  sum = f32x4.add(sum, v128.shuffle<f32>(sum, sum, 2, 3, 0, 1));
  sum = f32x4.add(sum, v128.shuffle<f32>(sum, sum, 1, 0, 3, 2));
  return f32x4.extract_lane(sum, 0);
}

// For each set of lanes, the bytes that move these lanes to the front.
const SHUFFLES = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0,
  8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0,
  4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0,
  12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0,
  4, 5, 6, 7, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 0, 0, 0, 0,
  8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0,
  4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0,
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
]);

/**
 * Writes the indices of the logits that are at least `cut`, ascending, counted from `first`. Returns how
 * many. Reads only blocks whose maximum reaches the cut. Writes four numbers at a time: up to three follow
 * the last index.
 */
export function list(row: usize, blocks: i32, maxima: usize, cut: f32, first: i32, ids: usize): i32 {
  const least = f32x4.splat(cut);
  const start = ids;
  for (; blocks > 0; blocks--) {
    if (f32.load(maxima) >= cut) {
      let four = i32x4.add(i32x4.splat(first), i32x4(0, 1, 2, 3));
      for (let at = row; at < row + BLOCK_BYTES; at += VECTOR_BYTES) {
        const reaching = i32x4.bitmask(f32x4.ge(v128.load(at), least));
        v128.store(ids, i8x16.swizzle(four, v128.load(SHUFFLES + (reaching << 4))));
        ids += popcnt(reaching) << 2;
        four = i32x4.add(four, i32x4.splat(4));
      }
    }
    row += BLOCK_BYTES;
    maxima += 4;
    first += 128;
  }
  return <i32>((ids - start) / 4);
}

/** Writes three float64: the number of logits above −∞, and their Σ d and Σ d² with d = highest − z. */
export function deviations(row: usize, blocks: i32, results: usize, highest: f64): void {
  const top = f64x2.splat(highest);
  const lowest = f32x4.splat(-f32.MAX_VALUE);
  let count = i32x4.splat(0);
  let sum = f64x2.splat(0);
  let squares = f64x2.splat(0);
  for (const end = row + BLOCK_BYTES * blocks; row < end; row += VECTOR_BYTES) {
    const x = v128.load(row);
    const finite = f32x4.ge(x, lowest);
    // A comparison that holds is −1.
    count = i32x4.sub(count, finite);
    const low = f64x2.sub(top, f64x2.promote_low_f32x4(x));
    const high = f64x2.sub(top, f64x2.promote_low_f32x4(v128.shuffle<f32>(x, x, 2, 3, 2, 3)));
    const d0 = v128.and(low, v128.shuffle<i32>(finite, finite, 0, 0, 1, 1));
    const d1 = v128.and(high, v128.shuffle<i32>(finite, finite, 2, 2, 3, 3));
    sum = f64x2.add(f64x2.add(sum, d0), d1);
    squares = f64x2.add(f64x2.add(squares, f64x2.mul(d0, d0)), f64x2.mul(d1, d1));
  }
  count = i32x4.add(count, v128.shuffle<i32>(count, count, 2, 3, 0, 1));
  f64.store(results, i32x4.extract_lane(count, 0) + i32x4.extract_lane(count, 1));
  f64.store(results, f64x2.extract_lane(sum, 0) + f64x2.extract_lane(sum, 1), 8);
  f64.store(results, f64x2.extract_lane(squares, 0) + f64x2.extract_lane(squares, 1), 16);
}
