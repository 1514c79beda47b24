// Quantization of blocks of float32 values, in AssemblyScript (a TypeScript-like language for WebAssembly).
// `blockBytes` is the size of a block's values, a multiple of 128. The other arguments but `blocks` are byte
// addresses.
// Build: npm run build:kernel. The result is committed in quantize-kernel-binary.ts.

const VECTOR_BYTES: usize = 16;
/** Blocks whose largest magnitude is below are zero: their scales would be subnormal. */
const LEAST: f32 = 1e-35;

/** Writes the largest value of the four lanes. */
// @ts-expect-error: decorator
@inline
function largestLane(x: v128): f32 {
  const two = f32x4.pmax(x, v128.shuffle<f32>(x, x, 2, 3, 0, 1));
  return f32x4.extract_lane(f32x4.pmax(two, v128.shuffle<f32>(two, two, 1, 0, 3, 2)), 0);
}

// @ts-expect-error: decorator
@inline
function sumOfLanes(x: v128): f32 {
  const two = f32x4.add(x, v128.shuffle<f32>(x, x, 2, 3, 0, 1));
  return f32x4.extract_lane(f32x4.add(two, v128.shuffle<f32>(two, two, 1, 0, 3, 2)), 0);
}

/** 8 bits: scale = max |x| / 127, level = round(x / scale) + 128. Returns 0 if a value is NaN or infinite. */
export function quantize8(
  values: usize,
  blocks: i32,
  blockBytes: usize,
  levels: usize,
  scales: usize,
): i32 {
  const infinity = f32x4.splat(Infinity);
  let valid = i32x4.splat(-1);
  for (; blocks > 0; blocks--) {
    let most = f32x4.splat(0);
    for (let at = values; at < values + blockBytes; at += VECTOR_BYTES) {
      const magnitude = f32x4.abs(v128.load(at));
      valid = v128.and(valid, f32x4.lt(magnitude, infinity));
      most = f32x4.pmax(most, magnitude);
    }
    const largest = largestLane(most);
    const isZero = largest < LEAST;
    f32.store(scales, isZero ? 0 : largest / 127);
    const factor = f32x4.splat(isZero ? 0 : 127 / largest);
    for (const end = values + blockBytes; values < end; values += 4 * VECTOR_BYTES) {
      const low = i16x8.narrow_i32x4_s(scaled(values, factor), scaled(values + VECTOR_BYTES, factor));
      const high = i16x8.narrow_i32x4_s(
        scaled(values + 2 * VECTOR_BYTES, factor),
        scaled(values + 3 * VECTOR_BYTES, factor),
      );
      v128.store(levels, v128.xor(i8x16.narrow_i16x8_s(low, high), i8x16.splat(-128)));
      levels += VECTOR_BYTES;
    }
    scales += 4;
  }
  return i32x4.all_true(valid) ? 1 : 0;
}

// @ts-expect-error: decorator
@inline
function scaled(at: usize, factor: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.nearest(f32x4.mul(v128.load(at), factor)));
}

/** The level that the value of largest magnitude gets under each of the first scales that are tried. */
const EXTREMES = memory.data<f32>([-8, -7.25, -8.75]);
const TRIES: usize = 3;

/** The best scale for the levels that a scale gives, and by how much it lowers Σ x²: (Σ x·q)² / Σ q². */
let fittedScale: f32 = 0;
let fittedGain: f32 = 0;

function fit(values: usize, blockBytes: usize, scale: f32): void {
  const inverse = f32x4.splat(1 / scale);
  let products = f32x4.splat(0);
  let squares = f32x4.splat(0);
  // Two sums: each waits for its last addition.
  let products2 = products;
  let squares2 = squares;
  for (let at = values; at < values + blockBytes; at += 2 * VECTOR_BYTES) {
    const x = v128.load(at);
    const y = v128.load(at, VECTOR_BYTES);
    const level = levelOf(x, inverse);
    const level2 = levelOf(y, inverse);
    products = f32x4.add(products, f32x4.mul(x, level));
    squares = f32x4.add(squares, f32x4.mul(level, level));
    products2 = f32x4.add(products2, f32x4.mul(y, level2));
    squares2 = f32x4.add(squares2, f32x4.mul(level2, level2));
  }
  const product = sumOfLanes(f32x4.add(products, products2));
  const square = sumOfLanes(f32x4.add(squares, squares2));
  fittedScale = square == 0 ? 0 : product / square;
  fittedGain = square == 0 ? -1 : product * fittedScale;
}

// @ts-expect-error: decorator
@inline
function levelOf(x: v128, inverse: v128): v128 {
  const level = f32x4.nearest(f32x4.mul(x, inverse));
  return f32x4.pmax(f32x4.splat(-8), f32x4.pmin(f32x4.splat(7), level));
}

/**
 * 4 bits around level 8 with scales of least squared error. Several first scales give levels, and each is
 * replaced by the best scale for its levels. The best of those gives levels once more. Levels of even index
 * are in the low bits. Returns 0 if a value is NaN or infinite.
 */
export function quantize4(
  values: usize,
  blocks: i32,
  blockBytes: usize,
  levels: usize,
  scales: usize,
): i32 {
  const infinity = f32x4.splat(Infinity);
  let valid = i32x4.splat(-1);
  for (; blocks > 0; blocks--) {
    let most = f32x4.splat(0);
    let least = f32x4.splat(0);
    for (let at = values; at < values + blockBytes; at += VECTOR_BYTES) {
      const x = v128.load(at);
      valid = v128.and(valid, f32x4.lt(f32x4.abs(x), infinity));
      most = f32x4.pmax(most, x);
      least = f32x4.pmax(least, f32x4.neg(x));
    }
    const above = largestLane(most);
    const below = largestLane(least);
    const extreme = above > below ? above : -below;
    let scale: f32 = 0;
    if (abs(extreme) >= LEAST) {
      let gain: f32 = -1;
      for (let index: usize = 0; index <= TRIES; index++) {
        fit(values, blockBytes, index < TRIES ? extreme / f32.load(EXTREMES + (index << 2)) : scale);
        if (fittedGain > gain) {
          gain = fittedGain;
          scale = fittedScale;
        }
      }
    }
    f32.store(scales, scale);
    const inverse = f32x4.splat(scale == 0 ? 0 : 1 / scale);
    for (const end = values + blockBytes; values < end; values += 4 * VECTOR_BYTES) {
      const a = i32x4.trunc_sat_f32x4_s(levelOf(v128.load(values), inverse));
      const b = i32x4.trunc_sat_f32x4_s(levelOf(v128.load(values, VECTOR_BYTES), inverse));
      const c = i32x4.trunc_sat_f32x4_s(levelOf(v128.load(values, 2 * VECTOR_BYTES), inverse));
      const d = i32x4.trunc_sat_f32x4_s(levelOf(v128.load(values, 3 * VECTOR_BYTES), inverse));
      const signed = i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, d));
      const bytes = i8x16.add(signed, i8x16.splat(8));
      // Pairs of bytes to one: the second one moves four bits up.
      const pairs = v128.or(bytes, i16x8.shr_u(bytes, 4));
      const packed = i8x16.narrow_i16x8_u(v128.and(pairs, i16x8.splat(0xff)), pairs);
      v128.store64_lane(levels, packed, 0);
      levels += 8;
    }
    scales += 4;
  }
  return i32x4.all_true(valid) ? 1 : 0;
}
