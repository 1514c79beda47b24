import { logits, OWN, overBlocks, storeAcrossLanes, VECTORS } from './block-loop.ts';
import { type Code, F32, V128, type WasmFunction } from './wasm-encode.ts';
import { f32, f32x4, get, i32x4, set, v128 } from './wasm-instructions.ts';

/** Added to a small number it leaves the nearest integer in the low bits. */
const ROUNDING = 1.5 * 2 ** 23;
const MANTISSA_BITS = 23;
/** Anything below counts as this power of two: float32 has hardly any smaller ones. */
const LOWEST_POWER = -125;
/** 2^f for |f| ≤ ½ by rising powers of f, within 2·10⁻⁷ (minimax). */
const POWERS = [1.0000001, 0.69314694, 0.2402212, 0.055507135, 0.009675541, 0.0013276408];

/** Vectors that go through the steps side by side: each step waits for the one before, and few can wait at a time. */
const ABREAST = 4;

/** The three parameters, and as vectors in locals. */
const [HIGHEST, COLDNESS, CUT] = [OWN, OWN + 1, OWN + 2] as const;
const [highest, coldness, cut, lowest, rounding] = [OWN + 3, OWN + 4, OWN + 5, OWN + 6, OWN + 7] as const;
const [total, second] = [OWN + 8, OWN + 9] as const;
const powers = POWERS.map((_, power) => OWN + 10 + power);
const OF_VECTORS = OWN + 10 + POWERS.length;

/** What follows each block's sum: Σ e^x · x / ln 2, or Σ e^x of the logits that reach the cut. */
type Second = 'moment' | 'above' | null;

/**
 * Σ e^x of each block, x = (z − highest) · coldness, with e^x = 2^n · 2^f and n the nearest integer to x / ln 2: the
 * polynomial's bits plus n in the exponent. The constants are locals because the compiler would else build each anew for
 * every vector.
 */
export function blockSums(name: string, and: Second): WasmFunction {
  return overBlocks({
    name,
    parameters: [F32, F32, F32],
    results: [],
    locals: new Array<number>(OF_VECTORS - highest + 4 * ABREAST).fill(V128),
    resultBytes: and === null ? 4 : 8,
    before: [
      set(cut, f32x4.splat(get(CUT))),
      set(highest, f32x4.splat(get(HIGHEST))),
      set(coldness, f32x4.splat(f32.mul(get(COLDNESS), f32.const(Math.LOG2E)))),
      set(lowest, f32x4.const(LOWEST_POWER)),
      set(rounding, f32x4.const(ROUNDING)),
      ...powers.map((local, power) => set(local, f32x4.const(POWERS[power]!))),
    ],
    block: [
      ...[total, second].map((sum) => set(sum, f32x4.const(0))),
      ...Array.from({ length: VECTORS / ABREAST }, (_, group) => addGroup(ABREAST * group, and)).flat(),
      ...storeAcrossLanes(total, f32x4.add),
      ...(and === null ? [] : storeAcrossLanes(second, f32x4.add, 1)),
    ],
    after: [],
  });
}

/** Each step for all vectors of the group before the next step. */
function addGroup(first: number, and: Second): Code[] {
  const ofVectors = Array.from({ length: ABREAST }, (_, vector) =>
    stepsOf(first + vector, OF_VECTORS + 4 * vector, and),
  );
  return ofVectors[0]!.flatMap((_, step) => ofVectors.map((steps) => steps[step]!));
}

/** Adds one vector's terms to the total, by way of four locals. */
function stepsOf(vector: number, locals: number, and: Second): Code[] {
  const [x, n, power, f] = [locals, locals + 1, locals + 2, locals + 3];
  const secondTerm = {
    none: [],
    moment: [f32x4.mul(get(power), get(x))],
    above: [v128.and(get(power), f32x4.atLeast(logits(vector), get(cut)))],
  }[and ?? 'none'];
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
    ...secondTerm.map((term) => set(second, f32x4.add(term, get(second)))),
  ];
}
