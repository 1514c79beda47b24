import { BLOCK_SIZE, everyVector, logits, OWN, overBlocks, RESULTS } from './block-loop.ts';
import { SHUFFLES_AT } from './tables.ts';
import { F32, I32, V128, type WasmFunction } from './wasm-encode.ts';
import { f32, f32x4, get, i8x16, i32, i32x4, set, v128, when } from './wasm-instructions.ts';

/** The parameters: the cut and the limit, bytes where the maxima lie, the first id of the block at hand. */
const [CUT, LIMIT, MAXIMA, FIRST] = [OWN, OWN + 1, OWN + 2, OWN + 3] as const;
/** Bits of the lanes that are listed, then bytes that they take. */
const listed = OWN + 4;
/** Cut and limit in each lane; four logits, then whether they are listed; their ids; the order that brings those to the front. */
const [cut, limit, x, ids, order, four] = [OWN + 5, OWN + 6, OWN + 7, OWN + 8, OWN + 9, OWN + 10] as const;

/**
 * The ids of the logits z with cut ≤ z < limit in ascending order; returns where they end. Blocks whose largest logit is
 * below the cut are not read. Four lanes are written each time, and what comes next overwrites those that do not count:
 * three more numbers than the results need room.
 */
export function blockList(): WasmFunction {
  return overBlocks({
    name: 'list',
    parameters: [F32, F32, I32, I32],
    results: [I32],
    locals: [I32, ...new Array<number>(four - listed).fill(V128)],
    resultBytes: 0,
    before: [
      set(cut, f32x4.splat(get(CUT))),
      set(limit, f32x4.splat(get(LIMIT))),
      set(four, i32x4.const(4, 4, 4, 4)),
    ],
    block: [
      when(f32.atLeast(f32.load(get(MAXIMA)), get(CUT)), [
        set(ids, i32x4.add(i32x4.splat(get(FIRST)), i32x4.const(0, 1, 2, 3))),
        ...everyVector((vector) => [
          ...set(x, logits(vector)),
          ...set(x, v128.and(f32x4.atLeast(get(x), get(cut)), f32x4.lessThan(get(x), get(limit)))),
          ...set(listed, i32x4.signs(get(x))),
          ...set(order, v128.load(i32.shiftLeft(get(listed), i32.const(4)), SHUFFLES_AT)),
          ...v128.store(get(RESULTS), i8x16.swizzle(get(ids), get(order))),
          ...set(listed, i32.shiftLeft(i32.bitCount(get(listed)), i32.const(2))),
          ...set(RESULTS, i32.add(get(RESULTS), get(listed))),
          ...set(ids, i32x4.add(get(ids), get(four))),
        ]),
      ]),
      set(FIRST, i32.add(get(FIRST), i32.const(BLOCK_SIZE))),
      set(MAXIMA, i32.add(get(MAXIMA), i32.const(4))),
    ],
    after: get(RESULTS),
  });
}
