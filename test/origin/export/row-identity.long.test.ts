import { join } from 'node:path';
import { expect, it } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';
import { expectSameBits, openRunner } from './built-model.ts';
import { CASES } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';

/**
 * Experts, sinks, ALiBi, capped scores, windows, outer rotation, latent attention, sparse mixers, streams,
 * shared KV.
 */
const NAMES = [
  ...['olmoe', 'gpt_oss', 'bloom', 'gemma2', 'gemma3', 'phi', 'deepseek_v2', 'deepseek_v3', 'phimoe'],
  ...['gemma3n', 'gemma4', 'llama4_text'],
];
const PRECISIONS = ['fp32', 'fp16', 'int8', 'int4'] as const;

const cases = CASES.filter(({ name }) => NAMES.includes(name)).flatMap((one) =>
  PRECISIONS.map((precision) => ({ name: one.name, one, precision })),
);

it('knows the families', () => expect(cases.length).toBe(NAMES.length * PRECISIONS.length));

it.each(cases)(
  '$name in $precision has the same bits alone, in a batch of eight and after a copied prefix',
  async ({ one, precision }) => {
    const directory = join(temporaryDirectory(), 'built');
    await buildModel(hashedCheckpoint(one.config, one.tensors), { precision, directory });
    await expectSameBits(await openRunner(directory));
  },
);
