import { mulberry32 } from '../random.ts';

/** Seeded random weights and the block quantisation MatMulNBits reads. */

/** Values repeat after so many, to write large networks fast. A prime, so rows differ. */
const PERIOD = 1_000_003;

export class WeightSource {
  readonly #uniform: () => number;

  constructor(seed: number) {
    this.#uniform = mulberry32(seed * 2_654_435_761 + 1);
  }

  /** Values of mean `mean` and standard deviation `deviation` (of three uniforms, nearly normal). */
  normal(count: number, deviation: number, mean = 0): Float32Array {
    const values = new Float32Array(count);
    for (let i = 0; i < Math.min(count, PERIOD); i++) {
      const sum = this.#uniform() + this.#uniform() + this.#uniform() - 1.5;
      values[i] = mean + 2 * deviation * sum;
    }
    for (let at = PERIOD; at < count; at += PERIOD) values.copyWithin(at, 0, Math.min(PERIOD, count - at));
    return values;
  }
}

export interface BlockQuantized {
  /** [columns, rows / block, block · bits / 8] */
  readonly packed: Uint8Array;
  /** [columns · rows / block] */
  readonly scales: Float32Array;
}

/**
 * Symmetric block quantisation of a matrix given transposed, [columns, rows]: value = (q − 2^(bits−1)) ·
 * scale, blocks along the rows, 4-bit values packed low nibble first.
 */
export function quantizeBlocks(transposed: Float32Array, bits: 4 | 8, block: number): BlockQuantized {
  const zero = 2 ** (bits - 1);
  const blocks = transposed.length / block;
  const scales = new Float32Array(blocks);
  const packed = new Uint8Array((transposed.length * bits) / 8);
  for (let b = 0; b < blocks; b++) {
    let largest = 0;
    for (let i = 0; i < block; i++) largest = Math.max(largest, Math.abs(transposed[b * block + i]!));
    const scale = largest > 0 ? largest / (zero - 1) : 1;
    scales[b] = scale;
    for (let i = 0; i < block; i++) {
      const index = b * block + i;
      const level = Math.min(2 * zero - 1, Math.max(0, Math.round(transposed[index]! / scale) + zero));
      if (bits === 8) packed[index] = level;
      else packed[index >> 1]! |= (index & 1) === 0 ? level : level << 4;
    }
  }
  return { packed, scales };
}

/** Symmetric quantisation of a whole tensor to 8 bits: value = level · scale. */
export function quantizeTensor(values: Float32Array): { levels: Int8Array; scale: number } {
  const scale = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127;
  return { levels: Int8Array.from(values, (value) => Math.round(value / scale)), scale };
}

/** [rows, columns] from [columns, rows]. */
export function transpose(values: Float32Array, columns: number, rows: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let column = 0; column < columns; column++) {
    for (let row = 0; row < rows; row++) result[row * columns + column] = values[column * rows + row]!;
  }
  return result;
}

/** bitsandbytes' FP4: the numbers that the upper bit of four negates. */
const FP4 = [0, 0.0052083333, 0.6666667, 1, 0.33333333, 0.5, 0.16666667, 0.25];

/** Blocks of 4-bit floats, two to a byte and the first above, and the largest value of each block. */
export function quantizeFloats(
  values: Float32Array,
  block: number,
): { packed: Uint8Array; largest: Float32Array } {
  const packed = new Uint8Array(values.length / 2);
  const largest = new Float32Array(values.length / block);
  for (let index = 0; index < values.length; index++) {
    const start = index - (index % block);
    if (index === start) {
      const of = values.subarray(start, start + block);
      largest[index / block] = of.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    }
    const share = values[index]! / largest[start / block]!;
    const distances = FP4.map((level) => Math.abs(level - Math.abs(share)));
    const level = distances.indexOf(Math.min(...distances)) + (share < 0 ? 8 : 0);
    packed[index >> 1]! |= index % 2 === 0 ? level << 4 : level;
  }
  return { packed, largest };
}
