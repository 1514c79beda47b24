import type { ModelRunner } from '../model-runner.ts';

/**
 * ONNX Runtime has kernels of their own for a single row, which on some processors and for some weights round otherwise
 * than those for several (4-bit weights without AVX-512, weights of any width without an accuracy level). What this
 * machine does with this model is found out by running it.
 */

/** Kernels take rows by twos, threes or fours, and a rest one by one. */
const BATCHES = [2, 3, 4, 5, 7];

/**
 * From how many rows on a run gives each of them the same bits, whatever their number; null when that depends on the
 * number, or on what is in the other rows.
 */
export async function leastRowsOf(runner: ModelRunner): Promise<1 | 2 | null> {
  const { slots } = runner.shape;
  const reference = await firstTokens(runner, slots);
  for (const rows of BATCHES.filter((batch) => batch < slots)) {
    if (!sameBits(await firstTokens(runner, rows), reference)) return null;
  }
  return sameBits(await firstTokens(runner, 1), reference) ? 1 : 2;
}

/** Logits after one token in each of the first `rows` slots, another one in each. */
async function firstTokens(runner: ModelRunner, rows: number): Promise<Float32Array> {
  const { vocabularySize } = runner.shape;
  const tokens = Int32Array.from({ length: rows }, (_, row) => (7 * row + 1) % vocabularySize);
  const batch = { firstSlot: 0, rows, tokens, positions: new Int32Array(rows) };
  return (await runner.decode(batch)).slice();
}

/** Whether what is in `some` has the bits of what `all` begins with. */
export function sameBits(some: Float32Array, all: Float32Array): boolean {
  const bytes = ({ buffer, byteOffset }: Float32Array) => Buffer.from(buffer, byteOffset, some.byteLength);
  return bytes(some).equals(bytes(all));
}
