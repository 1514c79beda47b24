/** A WebAssembly module by the binary format of the specification, as far as the kernel needs it. */

/** Instructions, or any other encoded part. */
export type Code = readonly number[];

export const I32 = 0x7f;
export const F32 = 0x7d;
export const F64 = 0x7c;
export const V128 = 0x7b;

export interface WasmFunction {
  readonly name: string;
  readonly parameters: readonly number[];
  readonly results: readonly number[];
  /** Types of the locals behind the parameters. */
  readonly locals: readonly number[];
  readonly body: Code;
}

/** Sizes of the imported memory, in pages of 64 KiB: at least one, and at most as many as there are where it is shared. */
const ANY_SIZE = [0, 1];
const ANY_SHARED_SIZE = [3, 1, ...unsigned(65_536)];

/** A module that exports these functions and imports the memory `memory.of`, which threads may share or may not. */
export function encodeModule(functions: readonly WasmFunction[], shared: boolean): Uint8Array<ArrayBuffer> {
  const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const types = functions.map(({ parameters, results }) => [
    0x60,
    ...list(parameters.map((type) => [type])),
    ...list(results.map((type) => [type])),
  ]);
  const memory = [...name('memory'), ...name('of'), 2, ...(shared ? ANY_SHARED_SIZE : ANY_SIZE)];
  const bodies = functions.map(({ locals, body }) => {
    const code = [...list(locals.map((type) => [1, type])), ...body, END];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    ...MAGIC_AND_VERSION,
    ...section(1, list(types)),
    ...section(2, list([memory])),
    ...section(3, list(functions.map((_, index) => unsigned(index)))),
    ...section(7, list(functions.map((each, index) => [...name(each.name), 0, ...unsigned(index)]))),
    ...section(10, list(bodies)),
  ]);
}

export const END = 0x0b;

/** LEB128. */
export function unsigned(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...unsigned(Math.floor(value / 128))];
}

export function signed(value: number): number[] {
  const low = value & 127;
  const rest = value >> 7;
  const isLast = rest === ((low & 64) === 0 ? 0 : -1);
  return isLast ? [low] : [low | 128, ...signed(rest)];
}

function list(items: readonly Code[]): number[] {
  return [...unsigned(items.length), ...items.flat()];
}

function section(id: number, content: Code): number[] {
  return [id, ...unsigned(content.length), ...content];
}

function name(text: string): number[] {
  return list(Array.from(new TextEncoder().encode(text), (byte) => [byte]));
}
