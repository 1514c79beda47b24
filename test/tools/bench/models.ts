import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import {
  BENCHMARK_MODEL,
  type SyntheticModel,
  writeSyntheticModel,
} from '../../support/synthetic/synthetic-model.ts';

type Numbers = Pick<SyntheticModel, 'precision' | 'kv' | 'kvScales'>;

export interface BenchModel {
  readonly name: string;
  /** What the network computes with; absent = not known. */
  readonly numbers?: Numbers;
  /** False if transformers cannot be given the same weights; it gets random ones of the same sizes. */
  readonly convertible?: boolean;
  /** Returns the model directory, and writes the model on first use. */
  directory(): string;
}

/** The random network of 32 M parameters, or a variant. It is written once per machine. */
function synthetic(name: string, options: Partial<SyntheticModel>): BenchModel {
  const { precision, kv, kvScales } = { ...BENCHMARK_MODEL, ...options };
  return {
    name,
    numbers: { precision, kv, kvScales },
    convertible: options.packed !== true,
    directory: () => {
      const directory = path.join(tmpdir(), 'continuo-bench-models', name);
      const complete = path.join(directory, 'complete');
      if (!existsSync(complete)) {
        const model = writeSyntheticModel(directory, { ...BENCHMARK_MODEL, ...options });
        writeByteTokenizer(directory, model.vocabulary);
        writeFileSync(complete, '');
      }
      return directory;
    },
  };
}

/** The sizes of Llama 3.2 1B, with its own output matrix; the graph as `continuo model build` writes it. */
const LLAMA_1B: Partial<SyntheticModel> = {
  packed: true,
  joinsGate: true,
  precision: 'float16',
  layers: 16,
  hidden: 2048,
  heads: 32,
  kvHeads: 8,
  intermediate: 8192,
  vocabulary: 128_256,
  contextLength: 33_000,
  externalData: true,
  repeatsLayers: true,
};

/** The sizes of Llama 3.1 8B. Layers share the matrices of one, so the file takes 2.5 GB in float16. */
const LLAMA_8B: Partial<SyntheticModel> = {
  ...LLAMA_1B,
  layers: 32,
  hidden: 4096,
  headSize: 128,
  intermediate: 14_336,
  repeatsLayers: false,
  sharesLayers: true,
};

export const benchModels: Readonly<Record<string, BenchModel>> = {
  'built-in': {
    name: 'built-in',
    directory: () => fileURLToPath(new URL('../../../origin/models/continuo-mini', import.meta.url)),
  },
  // For software renderers of WebGPU.
  'one-layer': synthetic('one-layer', {
    layers: 1,
    hidden: 64,
    heads: 4,
    kvHeads: 2,
    headSize: 16,
    intermediate: 96,
    vocabulary: 512,
  }),
  '32m-fp32': synthetic('32m-fp32', {}),
  '32m-8bit': synthetic('32m-8bit', { quantization: 'q8' }),
  '32m-4bit': synthetic('32m-4bit', { quantization: 'q4' }),
  // For CUDA, whose attention kernel supports half precision only.
  '32m-fp16': synthetic('32m-fp16', { precision: 'float16' }),
  // Larger than a GPU's caches, so that memory bandwidth is the limit.
  '450m-fp16': synthetic('450m-fp16', {
    precision: 'float16',
    layers: 24,
    hidden: 1024,
    heads: 16,
    kvHeads: 8,
    intermediate: 4096,
    vocabulary: 32_768,
  }),
  '1.2b-fp16': synthetic('1.2b-fp16', LLAMA_1B),
  '1.2b-fp16-apart': synthetic('1.2b-fp16-apart', { ...LLAMA_1B, joinsGate: false }),
  '1.2b-bf16': synthetic('1.2b-bf16', { ...LLAMA_1B, precision: 'bfloat16' }),
  '1.2b-kv-int8': synthetic('1.2b-kv-int8', { ...LLAMA_1B, kv: 'int8' }),
  '1.2b-kv-int8-channels': synthetic('1.2b-kv-int8-channels', {
    ...LLAMA_1B,
    kv: 'int8',
    kvScales: 'per-channel',
  }),
  '1.2b-kv-fp8': synthetic('1.2b-kv-fp8', { ...LLAMA_1B, kv: 'float8e4m3fn' }),
  '1.2b-bf16-kv-fp8': synthetic('1.2b-bf16-kv-fp8', {
    ...LLAMA_1B,
    precision: 'bfloat16',
    kv: 'float8e4m3fn',
  }),
  '1.2b-4bit': synthetic('1.2b-4bit', { ...LLAMA_1B, joinsGate: false, quantization: 'q4' }),
  '8b-fp16': synthetic('8b-fp16', LLAMA_8B),
  '8b-4bit': synthetic('8b-4bit', { ...LLAMA_8B, joinsGate: false, quantization: 'q4' }),
  // The vocabulary size of Qwen, to show the sampler's share of a step.
  '152k-8bit': synthetic('152k-8bit', { quantization: 'q8', vocabulary: 151_936 }),
};
