import { BLOCK_SIZE, logits, OWN, overBlocks, RESULTS } from './block-loop.ts';
import {
  type Code,
  F32,
  f32x4,
  get,
  i8x16,
  i16x8,
  i32,
  set,
  V128,
  type WasmFunction,
} from './wasm-encode.ts';

const CUT = OWN;
const cut = OWN + 1;
/** Logits whose comparisons fit into one vector of bytes. */
const AT_ONCE = 16;

/** A bit for each logit, 1 where z ≥ cut: the comparisons of sixteen, narrowed to bytes, leave their signs. */
export function blockMarks(): WasmFunction {
  return overBlocks({
    name: 'marks',
    parameters: [F32],
    results: [],
    locals: [V128],
    resultBytes: BLOCK_SIZE / 8,
    before: [set(cut, f32x4.splat(get(CUT)))],
    block: Array.from({ length: BLOCK_SIZE / AT_ONCE }, (_, part) => {
      const reaching = (vector: number): Code => f32x4.atLeast(logits(4 * part + vector), get(cut));
      const bytes = i8x16.narrow(
        i16x8.narrow(reaching(0), reaching(1)),
        i16x8.narrow(reaching(2), reaching(3)),
      );
      return i32.store16(get(RESULTS), (part * AT_ONCE) / 8, i8x16.signs(bytes));
    }),
    after: [],
  });
}
