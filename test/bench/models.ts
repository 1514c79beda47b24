import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeByteTokenizer } from '../synthetic/byte-tokenizer.ts';
import { BENCHMARK_MODEL, type SyntheticModel, writeSyntheticModel } from '../synthetic/synthetic-model.ts';

export interface BenchModel {
  readonly name: string;
  /** Where it is; made on first use. */
  directory(): string;
}

/** The random 32 M network; made once per machine, since it holds nothing but random numbers. */
function synthetic(
  name: string,
  quantization: SyntheticModel['quantization'],
  vocabulary = BENCHMARK_MODEL.vocabulary,
): BenchModel {
  return {
    name,
    directory: () => {
      const directory = path.join(tmpdir(), 'continuo-bench-models', name);
      const complete = path.join(directory, 'complete');
      if (!existsSync(complete)) {
        const model = writeSyntheticModel(directory, { ...BENCHMARK_MODEL, quantization, vocabulary });
        writeByteTokenizer(directory, model.vocabulary);
        writeFileSync(complete, '');
      }
      return directory;
    },
  };
}

export const benchModels: Readonly<Record<string, BenchModel>> = {
  'built-in': {
    name: 'built-in',
    directory: () => fileURLToPath(new URL('../../origin/models/continuo-mini', import.meta.url)),
  },
  '32m-fp32': synthetic('32m-fp32', 'none'),
  '32m-8bit': synthetic('32m-8bit', 'q8'),
  '32m-4bit': synthetic('32m-4bit', 'q4'),
  // As large a vocabulary as Qwen's: the sampler's share of a step shows here.
  '152k-8bit': synthetic('152k-8bit', 'q8', 151_936),
};
