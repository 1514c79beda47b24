import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { llamaGraph, type SyntheticModel } from './llama-graph.ts';

export type { SyntheticModel } from './llama-graph.ts';

/** Two layers, four query heads on two KV heads: small enough to make and load in milliseconds. */
export const TINY_MODEL: SyntheticModel = {
  layers: 2,
  hidden: 64,
  heads: 4,
  kvHeads: 2,
  headSize: 16,
  intermediate: 96,
  vocabulary: 256,
  contextLength: 512,
  ropeTheta: 10_000,
  normEpsilon: 1e-5,
  quantization: 'none',
  block: 32,
  precision: 'float32',
  positionIds: false,
  externalData: false,
  seed: 1,
};

/** The 32 M parameter network throughput is measured on: 8 layers of 512, vocabulary 8,192. */
export const BENCHMARK_MODEL: SyntheticModel = {
  ...TINY_MODEL,
  layers: 8,
  hidden: 512,
  heads: 8,
  kvHeads: 4,
  headSize: 64,
  intermediate: 1408,
  vocabulary: 8192,
  contextLength: 4096,
};

/**
 * Writes model.onnx (and model.onnx.data), config.json and generation_config.json of a random Llama into `directory`,
 * which is made. The same options give the same bytes. The last id of the vocabulary ends a text, the one before
 * begins it.
 */
export function writeSyntheticModel(
  directory: string,
  options: Partial<SyntheticModel> = {},
): SyntheticModel {
  const model: SyntheticModel = { ...TINY_MODEL, ...options };
  mkdirSync(directory, { recursive: true });
  llamaGraph(model).write(directory, 'model.onnx');
  const special = { bos_token_id: model.vocabulary - 2, eos_token_id: model.vocabulary - 1 };
  writeJson(join(directory, 'config.json'), {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_act: 'silu',
    hidden_size: model.hidden,
    intermediate_size: model.intermediate,
    num_hidden_layers: model.layers,
    num_attention_heads: model.heads,
    num_key_value_heads: model.kvHeads,
    head_dim: model.headSize,
    vocab_size: model.vocabulary,
    max_position_embeddings: model.contextLength,
    rms_norm_eps: model.normEpsilon,
    rope_theta: model.ropeTheta,
    tie_word_embeddings: false,
    ...special,
  });
  writeJson(join(directory, 'generation_config.json'), special);
  return model;
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
