import { LOWEST, STEPS_PER_UNIT, UNIT_PER_STEP } from '../exponential.ts';
import { FRACTIONS_AT } from './tables.ts';
import { type Code, F64, I32, V128, type WasmFunction } from './wasm-encode.ts';
import { f32x4, f64x2, get, i32, i32x4, i64x2, loopWhile, set, v128 } from './wasm-instructions.ts';

/** The parameters: bytes where the row begins, where the ids begin and end, where the weights go; the last two as vectors in locals. */
const [ROW, IDS, END, WEIGHTS, HIGHEST, COLDNESS] = [0, 1, 2, 3, 4, 5] as const;
const [highest, coldness] = [6, 7] as const;
/** In each lane of a local: the compiler would else build them anew for every pair. */
const CONSTANTS = [STEPS_PER_UNIT, UNIT_PER_STEP, LOWEST, 1 / 24, 1 / 6, 0.5, 1] as const;
const CONSTANT = 8;
const constant = (value: (typeof CONSTANTS)[number]): Code => get(CONSTANT + CONSTANTS.indexOf(value));
/** Bits of a step's number that count halvings. */
const WHOLE = CONSTANT + CONSTANTS.length;
const [x, n, r, y] = [WHOLE + 1, WHOLE + 2, WHOLE + 3, WHOLE + 4] as const;
const MANTISSA_BITS = 52;
/** Of a step's number: 64 steps halve. */
const FRACTION_BITS = 6;

/**
 * e^((z − highest) · coldness) of listed tokens, one at least: what exponential.ts does with the same bits, two numbers
 * at a time, so that ids and weights need room for one more; that id is read, and must be one.
 */
export function weights(): WasmFunction {
  return {
    name: 'weights',
    parameters: [I32, I32, I32, I32, F64, F64],
    results: [],
    locals: new Array<number>(y - highest + 1).fill(V128),
    body: [
      ...set(highest, f64x2.splat(get(HIGHEST))),
      ...set(coldness, f64x2.splat(get(COLDNESS))),
      ...CONSTANTS.flatMap((value, i) => set(CONSTANT + i, f64x2.const(value))),
      ...set(WHOLE, i32x4.const(-64, -64, -64, -64)),
      ...loopWhile(
        [
          ...weighPair(),
          set(IDS, i32.add(get(IDS), i32.const(8))),
          set(WEIGHTS, i32.add(get(WEIGHTS), i32.const(16))),
        ],
        i32.lessThan(get(IDS), get(END)),
      ),
    ],
  };
}

function weighPair(): Code[] {
  const logit = (offset: number): Code =>
    i32.add(get(ROW), i32.shiftLeft(i32.load(get(IDS), offset), i32.const(2)));
  const plus = (value: (typeof CONSTANTS)[number]): Code => set(y, f64x2.add(get(y), constant(value)));
  const timesRest = set(y, f64x2.mul(get(y), get(r)));
  const entry = (lane: number): Code =>
    i32.shiftLeft(i32.and(i32x4.lane(lane, get(n)), i32.const(63)), i32.const(3));
  const halvings = v128.and(get(n), get(WHOLE));
  const fractions = f64x2.loadPair(entry(0), entry(1), FRACTIONS_AT);
  return [
    set(x, f64x2.sub(f64x2.promoted(f32x4.loadPair(logit(0), logit(4))), get(highest))),
    set(x, f64x2.mul(get(x), get(coldness))),
    set(n, f64x2.sub(constant(0.5), f64x2.mul(get(x), constant(STEPS_PER_UNIT)))),
    set(n, i32x4.truncated(get(n))),
    set(r, f64x2.add(get(x), f64x2.mul(f64x2.ofIntegers(get(n)), constant(UNIT_PER_STEP)))),
    set(y, f64x2.mul(get(r), constant(1 / 24))),
    ...([1 / 6, 0.5, 1] as const).flatMap((coefficient) => [plus(coefficient), timesRest]),
    plus(1),
    set(n, i64x2.sub(fractions, i64x2.shiftLeft(i64x2.widened(halvings), MANTISSA_BITS - FRACTION_BITS))),
    set(y, f64x2.mul(get(n), get(y))),
    v128.store(get(WEIGHTS), v128.and(get(y), f64x2.atLeast(get(x), constant(LOWEST)))),
  ];
}
