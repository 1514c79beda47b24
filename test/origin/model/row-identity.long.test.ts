import { describe, expect, it } from 'vitest';
import type { ModelRunner } from '../../../origin/model/model-runner.ts';
import { decodeRows, prefillPrompt, randomTokens, syntheticRunner } from './synthetic-runner.ts';

/** Wide enough that the matrix kernels choose their blocked paths. */
const MODEL = {
  hidden: 192,
  heads: 6,
  kvHeads: 2,
  headSize: 32,
  intermediate: 352,
  vocabulary: 1000,
  contextLength: 600,
};
const ROWS = 23;
/** Around every width at which the mask grows, and both ends of the context. */
const LENGTHS = [1, 7, 31, 32, 33, 90, 254, 255, 256, 257, 300, 511, 512, 513, 597];
const lengthOf = (row: number) => LENGTHS[row % LENGTHS.length]! + Math.floor(row / LENGTHS.length);
const never = new AbortController().signal;

/**
 * Puts one sequence into each of the slots 1 … ROWS. Returns the logits of each one's decode step as a single
 * row in slot 0. Some kernels need an idle second row.
 */
async function decodedAlone(runner: ModelRunner): Promise<Float32Array[]> {
  const alone: Float32Array[] = [];
  for (let row = 0; row < ROWS; row++) {
    const length = lengthOf(row);
    await prefillPrompt(runner, row + 1, randomTokens(length, row, MODEL.vocabulary));
    runner.copy(row + 1, 0, length);
    const idle = { token: 0, position: lengthOf(0) };
    const rows = [{ token: row, position: length }, idle].slice(0, runner.shape.minRows);
    alone.push((await decodeRows(runner, 0, rows))[0]!);
  }
  return alone;
}

describe.each([
  { quantization: 'none', precision: 'float32', threads: 1 },
  { quantization: 'none', precision: 'float32', threads: 2 },
  { quantization: 'q4', precision: 'float32', threads: 1 },
  { quantization: 'q4', precision: 'float32', threads: 2 },
  { quantization: 'q8', precision: 'float32', threads: 1 },
  { quantization: 'q8', precision: 'float32', threads: 2 },
  { quantization: 'q4', precision: 'float32', threads: 2, accuracyLevel: 0 },
  { quantization: 'q8', precision: 'float32', threads: 2, accuracyLevel: 0 },
  {
    quantization: 'q8',
    precision: 'float32',
    threads: 2,
    block: 128,
    hidden: 256,
    heads: 8,
    intermediate: 384,
  },
  { quantization: 'bnb4', precision: 'float32', threads: 2 },
  { quantization: 'none', precision: 'float16', threads: 2 },
  { quantization: 'none', precision: 'float32', threads: 2, positionIds: true },
  { quantization: 'q4', precision: 'float16', threads: 2 },
  { quantization: 'none', precision: 'float32', threads: 2, kv: 'int8' },
  { quantization: 'q4', precision: 'float32', threads: 2, kv: 'int8', kvScales: 'per-channel' },
] as const)('every bit of a row is its own: %o', (variant) => {
  const { threads, ...model } = variant;

  it('in any batch, in any slot, at any width of the mask', async () => {
    const { runner } = await syntheticRunner({ ...MODEL, ...model }, { slots: ROWS + 1, threads });
    const alone = await decodedAlone(runner);
    const batches = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24];
    const { minRows, rowMultiple = 1 } = runner.shape;
    for (const batch of batches.filter((rows) => rows >= minRows && rows % rowMultiple === 0)) {
      for (let first = 0; first + batch <= ROWS; first += 1 + (batch % 5)) {
        const rows = Array.from({ length: batch }, (_, r) => ({
          token: first + r,
          position: lengthOf(first + r),
        }));
        const together = await decodeRows(runner, first + 1, rows);
        expect(together, `slots ${first + 1} to ${first + batch}`).toEqual(alone.slice(first, first + batch));
      }
    }
  });

  it('in a prefill, with any number of other requested positions', async () => {
    const { runner } = await syntheticRunner({ ...MODEL, ...model }, { threads, slots: 3 });
    const tokens = randomTokens(32, 5, MODEL.vocabulary);
    const logitsAt = async (slot: number, wanted: readonly number[]) => {
      const chunk = { slot, start: 0, tokens, logitsAt: Int32Array.from(wanted) };
      return (await runner.prefill(chunk, never)).slice();
    };
    const everyPosition = Array.from(tokens, (_, i) => i);
    const all = await logitsAt(0, everyPosition);
    const size = runner.shape.vocabularySize;
    for (const wanted of [...everyPosition.map((i) => [i]), [0, 31], [3, 4, 9], everyPosition.slice(15)]) {
      const some = await logitsAt(1 + (wanted.length % 2), wanted);
      const expected = wanted.flatMap((i) => [...all.subarray(i * size, (i + 1) * size)]);
      expect(some, `positions ${wanted}`).toEqual(Float32Array.from(expected));
    }
  });

  it('in a prefill run of two chunks', async () => {
    const { runner } = await syntheticRunner({ ...MODEL, ...model }, { threads, slots: 2 });
    const { prefillChunk, maxPrefillChunks } = runner.shape;
    expect(maxPrefillChunks).toBe(2);
    for (const length of [34, 35, 36, 39, 48, 61, 63, 64, 95, 103, 250, 300]) {
      const prompt = randomTokens(length, length, MODEL.vocabulary);
      const results = [];
      for (const chunks of [1, 2]) {
        const logits = await prefillPrompt(runner, 0, prompt, chunks * prefillChunk);
        const kv = new Uint8Array(length * runner.kvBytes.positionBytes);
        runner.kvBytes.read(0, 0, length, kv);
        results.push({ logits, kv });
      }
      expect(results[1], `${length} positions`).toEqual(results[0]);
    }
  });
});
