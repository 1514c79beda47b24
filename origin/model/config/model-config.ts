import * as z from 'zod';
import { GENAI_CONFIG, type GenaiModel, readGenaiConfig } from './genai-config.ts';
import { count, ModelError, type ModelTexts, readModelJson, tokenId, tokenIds } from './model-json.ts';
import { type FieldNames, missingSize, type SizeName, withCommonNames } from './size-names.ts';

/** Reads the sizes of a model from config.json (Hugging Face) and genai_config.json (onnxruntime-genai). */

const CONFIG = 'config.json';

const given = (name: SizeName) =>
  z.int({ error: ({ input }) => (input === undefined ? missingSize(name) : undefined) });

const required = (name: SizeName) => given(name).positive();

const modelConfigSchema = z.preprocess(
  (value) => withCommonNames(withTextSizes(value)),
  z.object({
    model_type: z.string().optional(),
    vocab_size: required('vocab_size'),
    hidden_size: count.optional(),
    num_hidden_layers: required('num_hidden_layers'),
    num_attention_heads: given('num_attention_heads').nonnegative(),
    num_key_value_heads: count.nullish(),
    head_dim: count.nullish(),
    max_position_embeddings: count.nullish(),
    alibi: z.boolean().nullish(),
    sliding_window: count.nullish(),
    use_sliding_window: z.boolean().nullish(),
    bos_token_id: tokenIds.nullish(),
    eos_token_id: tokenIds.nullish(),
    image_token_id: tokenId.nullish(),
    image_token_index: tokenId.nullish(),
    image_seq_length: count.nullish(),
    field_names: z.record(z.string(), z.string()).default({}),
  }),
);

const generationConfigSchema = z.object({
  bos_token_id: tokenIds.nullish(),
  eos_token_id: tokenIds.nullish(),
});

export interface ModelConfig {
  /** The file that the sizes come from. */
  readonly source: string;
  /** Its name of the architecture; null if it has none. */
  readonly architecture: string | null;
  /** Names of the sizes in that file, where they are not the common ones. */
  readonly fieldNames: FieldNames;
  readonly vocabularySize: number;
  readonly layers: number;
  /** 0 = no layer has attention. */
  readonly attentionHeads: number;
  readonly kvHeads: number;
  /** Null if the file has neither head_dim nor hidden_size. */
  readonly headSize: number | null;
  /** Infinity if positions are only attention biases (ALiBi), or nothing reads them. */
  readonly maxPositions: number;
  /** Positions that a token attends to, itself included; null = all. */
  readonly slidingWindow: number | null;
  /** The token that stands for an image in a prompt; null = the model does not accept images. */
  readonly imageTokenId: number | null;
  /** Positions of an image; null if the file does not say. */
  readonly imageLength: number | null;
}

/**
 * Reads config.json or genai_config.json, or both if they agree, and generation_config.json if present.
 * @throws ModelError
 */
export function readModelConfig(texts: ModelTexts): ModelConfig {
  const genai = readGenaiConfig(texts);
  const config = readModelJson(texts, CONFIG, modelConfigSchema);
  const sizes = genai === undefined ? undefined : genaiSizes(genai);
  const others = config === undefined ? undefined : huggingFaceSizes(config);
  if (sizes !== undefined && others !== undefined) requireAgreement(sizes, others);
  const chosen = sizes ?? others;
  if (chosen === undefined)
    throw new ModelError(`${texts.directory} has neither ${CONFIG} nor ${GENAI_CONFIG}`);
  const generation = readModelJson(texts, 'generation_config.json', generationConfigSchema) ?? {};
  const bos = generation.bos_token_id ?? genai?.bos_token_id ?? config?.bos_token_id ?? [];
  const eos = generation.eos_token_id ?? genai?.eos_token_id ?? config?.eos_token_id ?? [];
  const imageTokenId = config?.image_token_id ?? config?.image_token_index ?? null;
  const imageLength = config?.image_seq_length ?? null;
  // The tokenizer decides which tokens begin and end a text; here they are only checked.
  requireTokens([...bos, ...eos, ...(imageTokenId === null ? [] : [imageTokenId])], chosen);
  const maxPositions = Math.min(chosen.maxPositions, others?.maxPositions ?? Infinity);
  const slidingWindow = chosen.slidingWindow ?? others?.slidingWindow ?? null;
  return { ...chosen, maxPositions, slidingWindow, imageTokenId, imageLength };
}

type Sizes = Omit<ModelConfig, 'imageTokenId' | 'imageLength'>;

function huggingFaceSizes(config: z.infer<typeof modelConfigSchema>): Sizes {
  const heads = config.num_attention_heads;
  return {
    source: CONFIG,
    architecture: config.model_type ?? null,
    fieldNames: config.field_names,
    vocabularySize: config.vocab_size,
    layers: config.num_hidden_layers,
    attentionHeads: heads,
    kvHeads: config.num_key_value_heads ?? heads,
    headSize: config.head_dim ?? (config.hidden_size === undefined ? null : config.hidden_size / heads),
    maxPositions: maxPositions(config),
    slidingWindow: config.use_sliding_window === false ? null : (config.sliding_window ?? null),
  };
}

function maxPositions({
  max_position_embeddings,
  num_attention_heads,
  model_type,
  alibi,
}: z.infer<typeof modelConfigSchema>): number {
  const isUnlimited = num_attention_heads === 0 || (alibi ?? model_type === 'bloom');
  if (isUnlimited) return max_position_embeddings ?? Infinity;
  if (typeof max_position_embeddings === 'number') return max_position_embeddings;
  throw new ModelError(`${CONFIG}: max_position_embeddings: ${missingSize('max_position_embeddings')}`);
}

function genaiSizes({ type, vocab_size, context_length, decoder }: GenaiModel): Sizes {
  return {
    source: GENAI_CONFIG,
    architecture: type ?? null,
    fieldNames: {},
    vocabularySize: vocab_size,
    layers: decoder.num_hidden_layers,
    attentionHeads: decoder.num_attention_heads,
    kvHeads: decoder.num_key_value_heads,
    headSize: decoder.head_size,
    maxPositions: context_length,
    slidingWindow: decoder.sliding_window?.window_size ?? null,
  };
}

/** The vocabulary may differ, because some config.json files include the embedding's padding. */
function requireAgreement(genai: Sizes, config: Sizes): void {
  const pairs = [
    ['layers', genai.layers, config.layers],
    ['attention heads', genai.attentionHeads, config.attentionHeads],
    ['KV heads', genai.kvHeads, config.kvHeads],
  ] as const;
  for (const [what, theirs, ours] of pairs) {
    if (theirs !== ours)
      throw new ModelError(`${GENAI_CONFIG} says ${what} ${theirs} but ${CONFIG} says ${ours}`);
  }
}

function requireTokens(ids: readonly number[], { source, vocabularySize }: Sizes): void {
  const unknown = ids.find((id) => id >= vocabularySize);
  if (unknown === undefined) return;
  throw new ModelError(`${source}: token id ${unknown} is outside the vocabulary of ${vocabularySize}`);
}

/** Models with images have the sizes of their decoder in `text_config`. */
function withTextSizes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('text_config' in value)) return value;
  const { text_config: text, ...others } = value;
  return typeof text === 'object' ? { ...others, ...text } : value;
}
