import { logits, OWN, overBlocks, storeAcrossLanes, VECTORS } from './block-loop.ts';
import { type Code, F32, V128, type WasmFunction } from './wasm-encode.ts';
import { f32, f32x4, get, i32x4, set } from './wasm-instructions.ts';

/** Added to a small number it leaves the nearest integer in the low bits. */
const ROUNDING = 1.5 * 2 ** 23;
const MANTISSA_BITS = 23;
/** Anything below counts as this power of two: float32 has hardly any smaller ones. */
const LOWEST_POWER = -125;
/** 2^f for |f| ≤ ½ by rising powers of f, within 2·10⁻⁷ (minimax). */
const POWERS = [1.0000001, 0.69314694, 0.2402212, 0.055507135, 0.009675541, 0.0013276408];

/** Vectors that go through the steps side by side: each step waits for the one before, and few can wait at a time. */
const ABREAST = 4;

/** The two parameters, and as vectors in locals. */
const HIGHEST = OWN;
const COLDNESS = OWN + 1;
const [highest, coldness, lowest, rounding] = [OWN + 2, OWN + 3, OWN + 4, OWN + 5] as const;
const [total, weighted] = [OWN + 6, OWN + 7] as const;
const powers = POWERS.map((_, power) => OWN + 8 + power);
const OF_VECTORS = OWN + 8 + POWERS.length;

/**
 * Σ e^x of each block, x = (z − highest) · coldness, with e^x = 2^n · 2^f and n the nearest integer to x / ln 2: the
 * polynomial's bits plus n in the exponent. With moments Σ e^x · x / ln 2 follows each sum. The constants are locals
 * because the compiler would else build each anew for every vector.
 */
export function blockSums(name: string, withMoments: boolean): WasmFunction {
  return overBlocks({
    name,
    parameters: [F32, F32],
    results: [],
    locals: new Array<number>(OF_VECTORS - highest + 4 * ABREAST).fill(V128),
    resultBytes: withMoments ? 8 : 4,
    before: [
      set(highest, f32x4.splat(get(HIGHEST))),
      set(coldness, f32x4.splat(f32.mul(get(COLDNESS), f32.const(Math.LOG2E)))),
      set(lowest, f32x4.const(LOWEST_POWER)),
      set(rounding, f32x4.const(ROUNDING)),
      ...powers.map((local, power) => set(local, f32x4.const(POWERS[power]!))),
    ],
    block: [
      ...[total, weighted].map((sum) => set(sum, f32x4.const(0))),
      ...Array.from({ length: VECTORS / ABREAST }, (_, group) =>
        addGroup(ABREAST * group, withMoments),
      ).flat(),
      ...storeAcrossLanes(total, f32x4.add),
      ...(withMoments ? storeAcrossLanes(weighted, f32x4.add, 1) : []),
    ],
    after: [],
  });
}

/** Each step for all vectors of the group before the next step. */
function addGroup(first: number, withMoments: boolean): Code[] {
  const ofVectors = Array.from({ length: ABREAST }, (_, vector) =>
    stepsOf(first + vector, OF_VECTORS + 4 * vector, withMoments),
  );
  return ofVectors[0]!.flatMap((_, step) => ofVectors.map((steps) => steps[step]!));
}

/** Adds one vector's terms to the total, by way of four locals. */
function stepsOf(vector: number, locals: number, withMoments: boolean): Code[] {
  const [x, n, power, f] = [locals, locals + 1, locals + 2, locals + 3];
  return [
    set(x, f32x4.sub(logits(vector), get(highest))),
    set(x, f32x4.mul(get(x), get(coldness))),
    set(x, f32x4.max(get(x), get(lowest))),
    set(n, f32x4.add(get(x), get(rounding))),
    set(power, f32x4.sub(get(n), get(rounding))),
    set(f, f32x4.sub(get(x), get(power))),
    set(power, f32x4.mul(get(powers.at(-1)!), get(f))),
    ...powers
      .slice(1, -1)
      .toReversed()
      .flatMap((coefficient) => [
        set(power, f32x4.add(get(power), get(coefficient))),
        set(power, f32x4.mul(get(power), get(f))),
      ]),
    set(power, f32x4.add(get(power), get(powers[0]!))),
    set(n, i32x4.shiftLeft(get(n), MANTISSA_BITS)),
    set(power, i32x4.add(get(power), get(n))),
    set(total, f32x4.add(get(power), get(total))),
    ...(withMoments ? [set(weighted, f32x4.add(f32x4.mul(get(power), get(x)), get(weighted)))] : []),
  ];
}
