import { type Code, I32, type WasmFunction } from './wasm-encode.ts';
import { f32, f32x4, get, i32, loopWhile, set, v128 } from './wasm-instructions.ts';

/** Logits per block: 32 vectors of four. */
export const BLOCK_SIZE = 128;
export const VECTORS = BLOCK_SIZE / 4;

/** The first parameters of every function: bytes where the row begins, how many blocks there are, bytes where results go. */
const ROW = 0;
const BLOCKS = 1;
export const RESULTS = 2;

/** Where a function's own parameters and locals begin. */
export const OWN = 3;

export interface BlockFunction extends Pick<WasmFunction, 'name' | 'results' | 'locals'> {
  /** Types of what follows the common parameters. */
  readonly parameters: readonly number[];
  /** Bytes that a block's results take. */
  readonly resultBytes: number;
  readonly before: readonly Code[];
  /** Reduces one block and stores its results. */
  readonly block: readonly Code[];
  /** Leaves what is returned. */
  readonly after: Code;
}

/** The function that does the same with every block of a row, of which there is at least one. */
export function overBlocks(each: BlockFunction): WasmFunction {
  const { name, parameters, results, locals, resultBytes, before, block, after } = each;
  const loop = loopWhile(
    [
      ...block,
      set(RESULTS, i32.add(get(RESULTS), i32.const(resultBytes))),
      set(ROW, i32.add(get(ROW), i32.const(4 * BLOCK_SIZE))),
      set(BLOCKS, i32.sub(get(BLOCKS), i32.const(1))),
    ],
    get(BLOCKS),
  );
  return {
    name,
    parameters: [I32, I32, I32, ...parameters],
    results,
    locals,
    body: [...before.flat(), ...loop, ...after],
  };
}

/** Four logits of the block at hand. */
export function logits(vector: number): Code {
  return v128.load(get(ROW), 16 * vector);
}

/** Stores the combination of a vector's four lanes as one of the block's results. */
export function storeAcrossLanes(
  vector: number,
  combine: (a: Code, b: Code) => Code,
  result: number = 0,
): Code[] {
  return [
    set(vector, combine(get(vector), f32x4.permute([2, 3, 0, 1], get(vector)))),
    set(vector, combine(get(vector), f32x4.permute([1, 0, 3, 2], get(vector)))),
    f32.store(get(RESULTS), f32x4.lane(0, get(vector)), 4 * result),
  ];
}

/** Something for every vector of a block. */
export function everyVector(code: (vector: number) => Code): Code[] {
  return Array.from({ length: VECTORS }, (_, vector) => code(vector));
}
