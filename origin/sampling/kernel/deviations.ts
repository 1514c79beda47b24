import { LOWEST_LOGIT } from '../truncation/gather.ts';
import { everyVector, logits, OWN, overBlocks, RESULTS } from './block-loop.ts';
import { type Code, F64, V128, type WasmFunction } from './wasm-encode.ts';
import { f32x4, f64x2, get, i32x4, set, v128 } from './wasm-instructions.ts';

/** The parameter, and as a vector in a local; the least logit that counts. */
const HIGHEST = OWN;
const [highest, least] = [OWN + 1, OWN + 2] as const;
/** Sums in two lanes, and in four the count, below zero: a comparison that holds leaves −1. */
const [below, squares, count] = [OWN + 3, OWN + 4, OWN + 5] as const;
const [x, finite, wide] = [OWN + 6, OWN + 7, OWN + 8] as const;

/**
 * Over all blocks minus the number of logits that are not −∞, and of those Σ (highest − z) and Σ (highest − z)², as six
 * float64: two parts of each.
 */
export function deviations(): WasmFunction {
  return overBlocks({
    name: 'deviations',
    parameters: [F64],
    results: [],
    locals: new Array<number>(wide - HIGHEST).fill(V128),
    resultBytes: 0,
    before: [set(highest, f64x2.splat(get(HIGHEST))), set(least, f32x4.const(LOWEST_LOGIT))],
    block: everyVector((vector) => [
      ...set(x, logits(vector)),
      ...set(finite, f32x4.atLeast(get(x), get(least))),
      ...set(count, i32x4.add(get(count), get(finite))),
      ...add([0, 1]).flat(),
      ...add([2, 3]).flat(),
    ]),
    after: [
      ...v128.store(
        get(RESULTS),
        f64x2.add(f64x2.ofIntegers(get(count)), f64x2.ofIntegers(f32x4.permute([2, 3, 0, 1], get(count)))),
      ),
      ...v128.store(get(RESULTS), get(below), 16),
      ...v128.store(get(RESULTS), get(squares), 32),
    ],
  });
}

/** Adds two of the four logits at hand; of those that do not count, zeros. */
function add([first, second]: readonly [number, number]): Code[] {
  const [pair, whether] = [
    f32x4.permute([first, second, first, second], get(x)),
    f32x4.permute([first, first, second, second], get(finite)),
  ];
  return [
    set(wide, v128.and(f64x2.sub(get(highest), f64x2.promoted(pair)), whether)),
    set(below, f64x2.add(get(below), get(wide))),
    set(squares, f64x2.add(get(squares), f64x2.mul(get(wide), get(wide)))),
  ];
}
