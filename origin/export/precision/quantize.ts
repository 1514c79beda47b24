import type { BlockRows } from '../checkpoint/checkpoint.ts';

/** Block size of both precisions. */
export const BLOCK_SIZE = 32;

/**
 * 8 bits, symmetric: scale = max |x| / 127, level = round(x / scale) + 128.
 * @param values [rows, columns]
 */
export function quantize8(values: Float32Array, columns: number): BlockRows {
  const { rows, across } = blocksOf(values, columns);
  const levels = new Uint8Array(rows * across * BLOCK_SIZE).fill(128);
  const scales = new Float32Array(rows * across);
  for (let block = 0; block < scales.length; block++) {
    const row = Math.floor(block / across);
    const first = (block - row * across) * BLOCK_SIZE;
    const start = row * columns + first;
    const length = Math.min(BLOCK_SIZE, columns - first);
    let largest = 0;
    for (let i = start; i < start + length; i++) {
      const magnitude = Math.abs(values[i]!);
      if (magnitude > largest) largest = magnitude;
    }
    scales[block] = largest / 127;
    // A block of zeros, or of subnormal numbers, keeps the level of zero.
    const factor = scales[block] === 0 ? 0 : 127 / largest;
    const to = block * BLOCK_SIZE;
    // Levels are positive, so that truncation after adding 0.5 rounds to nearest.
    for (let i = 0; i < length; i++) levels[to + i] = values[start + i]! * factor + 128.5;
  }
  return { levels, scales, zeroPoints: null };
}

/** Levels that the value of largest magnitude may get: the sign of the scale lets it be −8 whatever its own sign is. */
const EXTREMES = [-8, -7.5, -7, -9];

/**
 * 4 bits, symmetric around level 8, with scales of least squared error: several first scales are tried; each is replaced by
 * the best one for its levels, Σ x·q / Σ q², and the levels are rounded again.
 * @param values [rows, columns]
 */
export function quantize4(values: Float32Array, columns: number): BlockRows {
  const { rows, across } = blocksOf(values, columns);
  const levels = new Uint8Array((rows * across * BLOCK_SIZE) / 2).fill(0x88);
  const scales = new Float32Array(rows * across);
  const block = new Float32Array(BLOCK_SIZE);
  for (let at = 0; at < scales.length; at++) {
    const row = Math.floor(at / across);
    const first = (at - row * across) * BLOCK_SIZE;
    block
      .fill(0)
      .set(values.subarray(row * columns + first, row * columns + Math.min(columns, first + BLOCK_SIZE)));
    const scale = bestScale(block);
    scales[at] = scale;
    const inverse = scale === 0 ? 0 : 1 / scale;
    const to = (at * BLOCK_SIZE) / 2;
    for (let i = 0; i < BLOCK_SIZE; i += 2) {
      levels[to + i / 2] = (levelOf(block[i]!, inverse) + 8) | ((levelOf(block[i + 1]!, inverse) + 8) << 4);
    }
  }
  return { levels, scales, zeroPoints: null };
}

/** round(x · inverse), within [−8, 7]. */
function levelOf(value: number, inverse: number): number {
  const level = ((value * inverse + 8.5) | 0) - 8;
  return level < -8 ? -8 : level > 7 ? 7 : level;
}

function bestScale(block: Float32Array): number {
  let extreme = 0;
  for (let i = 0; i < BLOCK_SIZE; i++) {
    if (Math.abs(block[i]!) > Math.abs(extreme)) extreme = block[i]!;
  }
  if (Math.fround(extreme / 8) === 0) return 0;
  let best = 0;
  let gain = -1;
  for (const level of EXTREMES) {
    const fitted = fit(block, extreme / level);
    const refitted = fit(block, fitted.scale);
    for (const { scale, gain: own } of [fitted, refitted]) {
      if (own > gain && scale !== 0) {
        gain = own;
        best = scale;
      }
    }
  }
  return best;
}

/** The best scale for the levels that `scale` gives, and by how much it lowers Σ x²: (Σ x·q)² / Σ q². */
function fit(block: Float32Array, scale: number): { scale: number; gain: number } {
  const inverse = scale === 0 ? 0 : 1 / scale;
  let products = 0;
  let squares = 0;
  for (let i = 0; i < BLOCK_SIZE; i++) {
    const level = levelOf(block[i]!, inverse);
    products += block[i]! * level;
    squares += level * level;
  }
  if (squares === 0) return { scale: 0, gain: 0 };
  return { scale: Math.fround(products / squares), gain: (products * products) / squares };
}

function blocksOf(values: Float32Array, columns: number): { rows: number; across: number } {
  return { rows: values.length / columns, across: Math.ceil(columns / BLOCK_SIZE) };
}
