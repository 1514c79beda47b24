import { describe, expect, it } from 'vitest';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { community, int8 } from './layout-parts.ts';
import { modelOptions, temporaryDirectory } from './synthetic-runner.ts';

describe('of several variants in one directory', () => {
  const FILES = {
    fp32: { quantization: 'none' },
    fp16: { precision: 'float16' },
    q4: { quantization: 'q4' },
    q8: int8,
  } as const;
  const names = { fp32: 'model', fp16: 'model_fp16', q4: 'model_q4', q8: 'model_quantized' };

  function severalVariants(variants: readonly (keyof typeof FILES)[]): string {
    const directory = temporaryDirectory();
    for (const variant of variants) writeSyntheticModel(directory, FILES[variant], community(names[variant]));
    return directory;
  }

  it.each([
    { there: ['fp32', 'fp16', 'q4', 'q8'], best: 'model_q4' },
    { there: ['fp32', 'fp16', 'q8'], best: 'model_fp16' },
    { there: ['fp32', 'q8'], best: 'model' },
    { there: ['q8'], best: 'model_quantized' },
  ] as const)('prefers $best among $there', async ({ there, best }) => {
    const { runner, summary } = await openModel(modelOptions(severalVariants(there)));
    runner.dispose();
    expect(summary.startsWith(`onnx/${best}.onnx: `)).toBe(true);
  });

  it('loads the requested one, and refuses a missing one with a list of those present', async () => {
    const directory = severalVariants(['fp32', 'q4', 'q8']);
    const { runner, summary } = await openModel(modelOptions(directory, { variant: 'q8' }));
    runner.dispose();
    expect(summary).toMatch(/^onnx\/model_quantized\.onnx: .* one row per run/);
    await expect(openModel(modelOptions(directory, { variant: 'fp16' }))).rejects.toThrow(
      /has no variant fp16; available: q4, fp32, q8$/,
    );
  });
});
