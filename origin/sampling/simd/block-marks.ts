import { BLOCK_SIZE, logits, OWN, overBlocks, RESULTS } from './block-loop.ts';
import {
  type Code,
  F32,
  f32,
  f32x4,
  get,
  I32,
  i8x16,
  i16x8,
  i32,
  set,
  V128,
  type WasmFunction,
  when,
} from './wasm-encode.ts';

/** The two parameters; the cut in each lane of a local. */
const CUT = OWN;
const MAXIMA = OWN + 1;
const cut = OWN + 2;
/** Logits whose comparisons fit into one vector of bytes. */
const AT_ONCE = 16;

/** A bit for each logit, 1 where z ≥ cut. Blocks whose largest logit is below it are not read. */
export function blockMarks(): WasmFunction {
  return overBlocks({
    name: 'marks',
    parameters: [F32, I32],
    results: [],
    locals: [V128],
    resultBytes: BLOCK_SIZE / 8,
    before: [set(cut, f32x4.splat(get(CUT)))],
    block: [
      f32x4.store(get(RESULTS), f32x4.const(0)),
      when(f32.atLeast(f32.load(get(MAXIMA)), get(CUT)), markBlock()),
      set(MAXIMA, i32.add(get(MAXIMA), i32.const(4))),
    ],
    after: [],
  });
}

/** The comparisons of sixteen logits, narrowed to bytes, leave their signs. */
function markBlock(): Code[] {
  return Array.from({ length: BLOCK_SIZE / AT_ONCE }, (_, part) => {
    const reaching = (vector: number): Code => f32x4.atLeast(logits(4 * part + vector), get(cut));
    const bytes = i8x16.narrow(
      i16x8.narrow(reaching(0), reaching(1)),
      i16x8.narrow(reaching(2), reaching(3)),
    );
    return i32.store16(get(RESULTS), (part * AT_ONCE) / 8, i8x16.signs(bytes));
  });
}
