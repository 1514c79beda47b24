import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { calibrateKv } from '../../../../origin/hub/prepare/calibrate-kv.ts';
import { withQuantizedKv } from '../../../../origin/model/onnx/quantized-kv.ts';
import { openModel } from '../../../../origin/model/open/open-model.ts';
import { planModel } from '../../../../origin/model/open/plan-model.ts';
import { quantizeKv } from '../../../../origin/model/open/quantize-kv.ts';
import { float64Llama } from '../../../support/float64-llama.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { roundedKv } from '../../../support/synthetic/quantized-kv.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { built, expectSameBits, largestDifference, openRunner } from '../../export/built-model.ts';
import { writeLlama } from '../../export/written-checkpoint.ts';
import {
  decodeRows,
  modelOptions,
  prefillPrompt,
  randomTokens,
  temporaryDirectory,
} from '../../model/synthetic-runner.ts';

const CPU = { provider: 'cpu', deviceId: null, memoryBytes: null } as const;
const SIZES = { heads: 4, kvHeads: 2, headSize: 16, layers: 2 };

async function builtWithTokenizer(precision: 'fp32' | 'int8' = 'fp32') {
  const { directory, reference, model } = writeLlama(temporaryDirectory(), SIZES);
  const { directory: made } = await built(directory, { precision });
  writeByteTokenizer(made, model.vocabulary + 2);
  return { made, reference };
}

describe('a KV cache in int8', () => {
  it('has the levels of a float64 pass that rounds keys and values, in prompts and in steps', async () => {
    const { made, reference } = await builtWithTokenizer();
    const numbers = { ...SIZES, kv: 'int8', kvScales: 'per-tensor' } as const;
    const { decoder } = planModel(modelOptions(made));
    const scales = new Float32Array(SIZES.kvHeads * SIZES.headSize).fill(6 / 127);
    const kv = decoder.kv.map(({ past, present, heads }) => ({ names: [past, present], heads, scales }));
    const graph = join(made, 'model.onnx');
    writeFileSync(graph, withQuantizedKv(readFileSync(graph), kv));
    const runner = await openRunner(made);
    const exact = float64Llama.load(join(reference, 'model.onnx'));
    for (const length of [1, 31, 33, 90]) {
      const prompt = randomTokens(length, length);
      const expected = exact.forward([...prompt, 5], { roundKv: roundedKv(numbers) });
      const plain = exact.forward([...prompt, 5]);
      const prefilled = (await prefillPrompt(runner, 0, prompt)).slice();
      const [decoded] = await decodeRows(runner, 0, [{ token: 5, position: length }]);
      // A level that rounds to the other side moves a logit by much less than all levels do.
      expect(largestDifference(prefilled, expected.at(-2)!)).toBeLessThan(2e-3);
      expect(largestDifference(decoded!, expected.at(-1)!)).toBeLessThan(2e-3);
      expect(largestDifference(decoded!, plain.at(-1)!)).toBeGreaterThan(5e-3);
    }
  });

  it.each(['fp32', 'int8'] as const)(
    'calibrated on the sample text takes a quarter of the memory and changes logits of %s little',
    async (precision) => {
      const { made } = await builtWithTokenizer(precision);
      const prompt = randomTokens(90, 3);
      const before = await openRunner(made);
      const expected = (await prefillPrompt(before, 0, prompt)).slice();
      await calibrateKv(made, CPU);
      const { runner, summary } = await openModel(modelOptions(made, { slots: 9 }));
      try {
        expect(summary).toContain('2 KV heads of 16 in int8');
        expect(runner.kvBytes.positionBytes).toBe(before.kvBytes.positionBytes / 4);
        const difference = largestDifference(await prefillPrompt(runner, 0, prompt), expected);
        expect(difference).toBeGreaterThan(0);
        expect(difference).toBeLessThan(0.1);
        await expectSameBits(runner);
      } finally {
        runner.dispose();
      }
    },
  );

  it('is refused if the cache is quantized already, or if no GroupQueryAttention keeps it', async () => {
    const { made } = await builtWithTokenizer();
    await calibrateKv(made, CPU);
    await expect(calibrateKv(made, CPU)).rejects.toThrow('KV in int8 is quantized already');
    const other = temporaryDirectory();
    writeSyntheticModel(other, { attention: 'concatenated' });
    await expect(quantizeKv(other, [1, 2], CPU)).rejects.toThrow(
      'model.onnx has no GroupQueryAttention, so its KV cannot be quantized',
    );
  });
});
