import { everyVector, logits, OWN, overBlocks, storeAcrossLanes } from './block-loop.ts';
import { I32, V128, type WasmFunction } from './wasm-encode.ts';
import { f32x4, get, i32x4, set, v128 } from './wasm-instructions.ts';

const BESTS = [OWN, OWN + 1, OWN + 2, OWN + 3] as const;
const SOUND = OWN + 4;
const X = OWN + 5;
const INFINITY = OWN + 6;

/** max z of each block; 0 where one of them may hold NaN or +∞. Four maxima side by side, so that none waits for the one before. */
export function blockMaxima(): WasmFunction {
  const [first, second, third, fourth] = BESTS;
  return overBlocks({
    name: 'maxima',
    parameters: [],
    results: [I32],
    locals: new Array<number>(7).fill(V128),
    resultBytes: 4,
    before: [set(SOUND, i32x4.const(-1, -1, -1, -1)), set(INFINITY, f32x4.const(Number.POSITIVE_INFINITY))],
    block: [
      ...BESTS.map((best) => set(best, f32x4.const(Number.NEGATIVE_INFINITY))),
      ...everyVector((vector) => {
        const best = BESTS[vector % BESTS.length]!;
        return [
          ...set(X, logits(vector)),
          ...set(best, f32x4.max(get(best), get(X))),
          ...set(SOUND, v128.and(get(SOUND), f32x4.lessThan(get(X), get(INFINITY)))),
        ];
      }),
      set(first, f32x4.max(f32x4.max(get(first), get(second)), f32x4.max(get(third), get(fourth)))),
      ...storeAcrossLanes(first, f32x4.max),
    ],
    after: i32x4.allTrue(get(SOUND)),
  });
}
