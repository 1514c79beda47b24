import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';

/** What a model directory's JSON files say, as Hugging Face writes them. */

/** A fault of the model or its directory; the message is one line fit for the log. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
}

const count = z.int().positive();
const tokenIds = z.union([
  z
    .int()
    .nonnegative()
    .transform((id) => [id]),
  z.array(z.int().nonnegative()),
]);

const modelConfigSchema = z.object({
  model_type: z.string().optional(),
  vocab_size: count,
  hidden_size: count.optional(),
  num_hidden_layers: count,
  num_attention_heads: count,
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  max_position_embeddings: count,
  bos_token_id: tokenIds.nullish(),
  eos_token_id: tokenIds.nullish(),
});

const generationConfigSchema = z.object({
  bos_token_id: tokenIds.nullish(),
  eos_token_id: tokenIds.nullish(),
});

export interface ModelConfig {
  readonly vocabularySize: number;
  readonly layers: number;
  readonly attentionHeads: number;
  readonly kvHeads: number;
  /** null where the file gives neither head_dim nor hidden_size. */
  readonly headSize: number | null;
  readonly maxPositions: number;
  readonly bosTokenId: number | null;
  /** Ids that end a text: generation_config.json's, else config.json's; may be empty. */
  readonly eosTokenIds: readonly number[];
}

/** Reads config.json and, where present, generation_config.json. Throws ModelError. */
export function readModelConfig(directory: string): ModelConfig {
  const config = readJson(directory, 'config.json', modelConfigSchema);
  if (config === undefined) throw new ModelError(`${directory} has no config.json`);
  const generation = readJson(directory, 'generation_config.json', generationConfigSchema) ?? {};
  const heads = config.num_attention_heads;
  const hidden = config.hidden_size;
  const bos = generation.bos_token_id ?? config.bos_token_id ?? [];
  const eos = generation.eos_token_id ?? config.eos_token_id ?? [];
  for (const id of [...bos, ...eos]) {
    if (id >= config.vocab_size) {
      throw new ModelError(`config.json: token id ${id} is outside the vocabulary of ${config.vocab_size}`);
    }
  }
  return {
    vocabularySize: config.vocab_size,
    layers: config.num_hidden_layers,
    attentionHeads: heads,
    kvHeads: config.num_key_value_heads ?? heads,
    headSize: config.head_dim ?? (hidden === undefined ? null : hidden / heads),
    maxPositions: config.max_position_embeddings,
    bosTokenId: bos[0] ?? null,
    eosTokenIds: eos,
  };
}

/** undefined when the file does not exist. */
function readJson<T>(directory: string, file: string, schema: z.ZodType<T>): T | undefined {
  let text: string;
  try {
    text = readFileSync(join(directory, file), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ModelError(`${file} cannot be read: ${(error as Error).message}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ModelError(`${file} is not valid JSON`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`);
  throw new ModelError(`${file}: ${faults.join('; ')}`);
}
