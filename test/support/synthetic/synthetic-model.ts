import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { llamaGraph, type SyntheticModel } from './llama-graph.ts';

export type { SyntheticModel } from './llama-graph.ts';

/** Two layers, four query heads on two KV heads: written and loaded within milliseconds. */
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
  accuracyLevel: 4,
  attention: 'group-query',
  packed: false,
  joinsGate: false,
  cachedBranch: 'several-tokens',
  slidingWindow: -1,
  windowedCache: false,
  kvDimension: 'number',
  shortRope: 0,
  logitsToKeep: 'none',
  softCap: 0,
  logits: 'float32',
  block: 32,
  precision: 'float32',
  kv: 'as-precision',
  kvScales: 'per-tensor',
  positionIds: false,
  externalData: false,
  sharesLayers: false,
  repeatsLayers: false,
  embedding: 'inside',
  seed: 1,
};

/** The network for throughput measurements: 32 M parameters, 8 layers of 512, vocabulary 8,192. */
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

/** Layout of a model directory. Published models have these three forms. */
export interface SyntheticLayout {
  /** Path of the graph in the directory. */
  readonly file: string;
  /** Name of the separate weights file in the graph's folder, if there is one. */
  readonly dataFile: string;
  /** `hugging-face`: config.json and generation_config.json; `genai`: genai_config.json only. */
  readonly configuration: 'hugging-face' | 'genai';
}

const PLAIN: SyntheticLayout = {
  file: 'model.onnx',
  dataFile: 'model.onnx.data',
  configuration: 'hugging-face',
};

/**
 * Creates `directory` and writes graph, external data and configuration of a random Llama. The same options
 * give the same bytes, and the same seed gives the same weights in every layout. The last id of the
 * vocabulary ends a text, the one before begins it.
 */
export function writeSyntheticModel(
  directory: string,
  options: Partial<SyntheticModel> = {},
  layout: Partial<SyntheticLayout> = {},
): SyntheticModel {
  const model: SyntheticModel = { ...TINY_MODEL, ...options };
  const { file, dataFile, configuration } = { ...PLAIN, ...layout };
  const folder = join(directory, dirname(file));
  mkdirSync(folder, { recursive: true });
  llamaGraph(model, model.externalData ? dataFile : undefined).write(folder, basename(file));
  if (configuration === 'genai') writeGenaiConfig(directory, file, model);
  else writeHuggingFaceConfig(directory, model);
  return model;
}

const specialIds = ({ vocabulary }: SyntheticModel) => ({
  bos_token_id: vocabulary - 2,
  eos_token_id: vocabulary - 1,
});

/** Sizes and special tokens in the form of transformers' config.json. */
export const llamaConfig = (model: SyntheticModel) => ({
  model_type: 'llama',
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
  ...specialIds(model),
});

function writeHuggingFaceConfig(directory: string, model: SyntheticModel): void {
  writeJson(join(directory, 'config.json'), {
    architectures: ['LlamaForCausalLM'],
    hidden_act: 'silu',
    ...(model.slidingWindow > 0 && { sliding_window: model.slidingWindow }),
    tie_word_embeddings: false,
    ...llamaConfig(model),
  });
  writeJson(join(directory, 'generation_config.json'), specialIds(model));
}

function writeGenaiConfig(directory: string, file: string, model: SyntheticModel): void {
  writeJson(join(directory, 'genai_config.json'), {
    model: {
      type: 'llama',
      ...specialIds(model),
      pad_token_id: model.vocabulary - 1,
      context_length: model.contextLength,
      vocab_size: model.vocabulary,
      decoder: {
        session_options: { log_id: 'onnxruntime-genai', provider_options: [] },
        filename: file,
        head_size: model.headSize,
        hidden_size: model.hidden,
        num_attention_heads: model.heads,
        num_hidden_layers: model.layers,
        num_key_value_heads: model.kvHeads,
        ...(model.slidingWindow > 0 && { sliding_window: { window_size: model.slidingWindow } }),
        inputs: {
          input_ids: 'input_ids',
          attention_mask: 'attention_mask',
          ...(model.positionIds && { position_ids: 'position_ids' }),
          past_key_names: 'past_key_values.%d.key',
          past_value_names: 'past_key_values.%d.value',
        },
        outputs: {
          logits: 'logits',
          present_key_names: 'present.%d.key',
          present_value_names: 'present.%d.value',
        },
      },
    },
    search: { max_length: model.contextLength, past_present_share_buffer: true },
  });
}

export function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
