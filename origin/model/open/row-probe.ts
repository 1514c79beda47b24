import type { ModelRunner } from '../model-runner.ts';

/**
 * ONNX Runtime has separate kernels for a single row. On some processors and for some weights they round differently (4-bit
 * weights without AVX-512, any weights without an accuracy level). This probe runs the model to find out.
 */

/** Kernels process rows in groups of two, three or four, and the rest singly. */
const BATCHES = [2, 3, 4, 5, 7];

/**
 * Returns the number of rows from which on each row's bits are independent of the number of rows; null if they always depend
 * on it or on the other rows.
 */
export async function findMinRows(runner: ModelRunner): Promise<1 | 2 | null> {
  const { slots } = runner.shape;
  const reference = await firstTokens(runner, slots);
  for (const rows of BATCHES.filter((batch) => batch < slots)) {
    if (!sameBits(await firstTokens(runner, rows), reference)) return null;
  }
  return sameBits(await firstTokens(runner, 1), reference) ? 1 : 2;
}

/** Returns the logits after one token in each of the first `rows` slots, a different one per slot. */
async function firstTokens(runner: ModelRunner, rows: number): Promise<Float32Array> {
  const { vocabularySize } = runner.shape;
  const tokens = Int32Array.from({ length: rows }, (_, row) => (7 * row + 1) % vocabularySize);
  const batch = { firstSlot: 0, rows, tokens, positions: new Int32Array(rows) };
  return (await runner.decode(batch)).slice();
}

/** Reports whether `some` equals the beginning of `all` bit for bit. */
export function sameBits(some: Float32Array, all: Float32Array): boolean {
  const bytes = ({ buffer, byteOffset }: Float32Array) => Buffer.from(buffer, byteOffset, some.byteLength);
  return bytes(some).equals(bytes(all));
}
