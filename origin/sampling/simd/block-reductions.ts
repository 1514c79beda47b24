import {
  type Code,
  encodeModule,
  F32,
  f32,
  f32x4,
  get,
  I32,
  i32,
  i32x4,
  loopWhile,
  set,
  V128,
  type WasmFunction,
} from './wasm-encode.ts';

/** Logits per block: 32 vectors of four. */
export const BLOCK_SIZE = 128;
const VECTORS = BLOCK_SIZE / 4;
const VECTOR_BYTES = 16;

/** Parameters of both functions: bytes where the row begins, how many blocks there are, bytes where results go. */
const ROW = 0;
const BLOCKS = 1;
const RESULTS = 2;

/** What the module exports; addresses in bytes of its memory. */
export interface BlockReductions {
  /** Writes each block's largest logit; 0 where one of them may be NaN or +∞. */
  maxima(row: number, blocks: number, results: number): number;
  /** Writes each block's Σ e^((z − highest) · coldness). */
  sums(row: number, blocks: number, results: number, highest: number, coldness: number): void;
}

/** IEEE operations alone, in an order that nothing changes: the same bits on every machine. */
export function blockReductions(): Uint8Array<ArrayBuffer> {
  return encodeModule([maxima(), sums()]);
}

/** Four maxima side by side, so that none waits for the one before. */
function maxima(): WasmFunction {
  const [bests, sound, x] = [[3, 4, 5, 6] as const, 7, 8];
  const [first, second, third, fourth] = bests;
  const oneVector = (vector: number): Code => {
    const best = bests[vector % 4]!;
    return [
      ...set(x, f32x4.load(get(ROW), vector * VECTOR_BYTES)),
      ...set(best, f32x4.max(get(best), get(x))),
      ...set(sound, i32x4.and(get(sound), f32x4.lessThan(get(x), f32x4.const(Number.POSITIVE_INFINITY)))),
    ];
  };
  const block = [
    ...bests.map((best) => set(best, f32x4.const(Number.NEGATIVE_INFINITY))),
    ...vectors().map(oneVector),
    set(first, f32x4.max(f32x4.max(get(first), get(second)), f32x4.max(get(third), get(fourth)))),
    ...acrossLanes(first, f32x4.max),
  ];
  return {
    name: 'maxima',
    parameters: [I32, I32, I32],
    results: [I32],
    locals: new Array<number>(6).fill(V128),
    body: [...set(sound, i32x4.const(-1)), ...forEachBlock(block, first), ...i32x4.allTrue(get(sound))],
  };
}

/** Added to a small number it leaves the nearest integer in the low bits. */
const ROUNDING = 1.5 * 2 ** 23;
const MANTISSA_BITS = 23;
/** Anything below counts as this power of two: float32 has hardly any smaller ones. */
const LOWEST_POWER = -125;
/** 2^f for |f| ≤ ½ by rising powers of f, within 2·10⁻⁷ (minimax). */
const POWERS = [1.0000001, 0.69314694, 0.2402212, 0.055507135, 0.009675541, 0.0013276408];

/**
 * e^x = 2^n · 2^f with n the nearest integer to x / ln 2: the polynomial's bits plus n in the exponent. The constants are
 * locals because the compiler would else build each anew for every vector.
 */
function sums(): WasmFunction {
  const [HIGHEST, COLDNESS] = [3, 4];
  const [highest, coldness, lowest, rounding, x, n, total] = [5, 6, 7, 8, 9, 10, 11];
  const powers = POWERS.map((_, power) => 12 + power);
  const polynomial = powers
    .slice(0, -1)
    .reduceRight((sum, power) => f32x4.add(f32x4.mul(sum, get(x)), get(power)), get(powers.at(-1)!));
  const oneVector = (vector: number): Code => {
    const below = f32x4.sub(f32x4.load(get(ROW), vector * VECTOR_BYTES), get(highest));
    return [
      ...set(x, f32x4.max(f32x4.mul(below, get(coldness)), get(lowest))),
      ...set(n, f32x4.add(get(x), get(rounding))),
      ...set(x, f32x4.sub(get(x), f32x4.sub(get(n), get(rounding)))),
      ...set(total, f32x4.add(i32x4.add(polynomial, i32x4.shiftLeft(get(n), MANTISSA_BITS)), get(total))),
    ];
  };
  return {
    name: 'sums',
    parameters: [I32, I32, I32, F32, F32],
    results: [],
    locals: new Array<number>(7 + POWERS.length).fill(V128),
    body: [
      ...set(highest, f32x4.splat(get(HIGHEST))),
      ...set(coldness, f32x4.splat(f32.mul(get(COLDNESS), f32.const(Math.LOG2E)))),
      ...set(lowest, f32x4.const(LOWEST_POWER)),
      ...set(rounding, f32x4.const(ROUNDING)),
      ...powers.flatMap((local, power) => set(local, f32x4.const(POWERS[power]!))),
      ...forEachBlock(
        [set(total, f32x4.const(0)), ...vectors().map(oneVector), ...acrossLanes(total, f32x4.add)],
        total,
      ),
    ],
  };
}

/** Computes a vector for each block, stores its first lane and goes on to the next block. */
function forEachBlock(block: readonly Code[], vector: number): Code {
  return loopWhile(
    [
      ...block,
      f32.store(get(RESULTS), f32x4.lane(0, get(vector))),
      set(RESULTS, i32.add(get(RESULTS), i32.const(4))),
      set(ROW, i32.add(get(ROW), i32.const(VECTORS * VECTOR_BYTES))),
      set(BLOCKS, i32.sub(get(BLOCKS), i32.const(1))),
    ],
    get(BLOCKS),
  );
}

/** Combines the four lanes into each of them. */
function acrossLanes(vector: number, combine: (a: Code, b: Code) => Code): Code[] {
  return [
    set(vector, combine(get(vector), f32x4.permute([2, 3, 0, 1], get(vector)))),
    set(vector, combine(get(vector), f32x4.permute([1, 0, 3, 2], get(vector)))),
  ];
}

function vectors(): number[] {
  return Array.from({ length: VECTORS }, (_, vector) => vector);
}
