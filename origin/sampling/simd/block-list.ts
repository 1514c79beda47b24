import { BLOCK_SIZE, everyVector, logits, OWN, overBlocks, RESULTS } from './block-loop.ts';
import { SHUFFLES_AT } from './tables.ts';
import { F32, I32, V128, type WasmFunction } from './wasm-encode.ts';
import { f32, f32x4, get, i8x16, i32, i32x4, set, v128, when } from './wasm-instructions.ts';

/** The parameters: the cut, bytes where the maxima lie and where the logits go, the first id of the block at hand. */
const CUT = OWN;
const MAXIMA = OWN + 1;
const LOGITS = OWN + 2;
const FIRST = OWN + 3;
/** Bits of the lanes that reach the cut, then bytes that they take. */
const reaching = OWN + 4;
/** The cut in each lane, four logits and their ids, the order that brings those that reach the cut to the front. */
const [cut, x, ids, order, four] = [OWN + 5, OWN + 6, OWN + 7, OWN + 8, OWN + 9] as const;

/**
 * The ids of the logits z ≥ cut in ascending order, and the logits themselves; returns where the ids end. Blocks whose
 * largest logit is below the cut are not read. Four lanes are written each time, and what comes next overwrites those
 * that do not count: three more numbers than the results need room.
 */
export function blockList(): WasmFunction {
  return overBlocks({
    name: 'list',
    parameters: [F32, I32, I32, I32],
    results: [I32],
    locals: [I32, V128, V128, V128, V128, V128],
    resultBytes: 0,
    before: [set(cut, f32x4.splat(get(CUT))), set(four, i32x4.const(4, 4, 4, 4))],
    block: [
      when(f32.atLeast(f32.load(get(MAXIMA)), get(CUT)), [
        set(ids, i32x4.add(i32x4.splat(get(FIRST)), i32x4.const(0, 1, 2, 3))),
        ...everyVector((vector) => [
          ...set(x, logits(vector)),
          ...set(reaching, i32x4.signs(f32x4.atLeast(get(x), get(cut)))),
          ...set(order, v128.load(i32.shiftLeft(get(reaching), i32.const(4)), SHUFFLES_AT)),
          ...v128.store(get(RESULTS), i8x16.swizzle(get(ids), get(order))),
          ...v128.store(get(LOGITS), i8x16.swizzle(get(x), get(order))),
          ...set(reaching, i32.shiftLeft(i32.bitCount(get(reaching)), i32.const(2))),
          ...set(RESULTS, i32.add(get(RESULTS), get(reaching))),
          ...set(LOGITS, i32.add(get(LOGITS), get(reaching))),
          ...set(ids, i32x4.add(get(ids), get(four))),
        ]),
      ]),
      set(FIRST, i32.add(get(FIRST), i32.const(BLOCK_SIZE))),
      set(MAXIMA, i32.add(get(MAXIMA), i32.const(4))),
    ],
    after: get(RESULTS),
  });
}
