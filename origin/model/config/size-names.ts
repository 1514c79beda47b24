import { isJsonObject } from '@continuo/shared/json-object.ts';
import * as z from 'zod';

/** Other names of a model's sizes in config.json, by the name that most architectures use. */
const OTHER_NAMES = {
  hidden_size: ['n_embd', 'd_model'],
  num_hidden_layers: ['n_layer', 'n_layers', 'num_layers'],
  num_attention_heads: ['n_head', 'n_heads', 'num_heads'],
  num_key_value_heads: ['multi_query_group_num'],
  head_dim: ['kv_channels'],
  max_position_embeddings: ['n_positions', 'max_seq_len', 'seq_length'],
  vocab_size: ['padded_vocab_size'],
} as const;

export type SizeName = keyof typeof OTHER_NAMES;

/** The field that a size was read from, where it has another name. */
export type FieldNames = Readonly<Partial<Record<SizeName, string>>>;

/** Fields that give the KV heads of Falcon and GPT-BigCode. */
const kvHeadFields = z.looseObject({
  num_key_value_heads: z.unknown().optional(),
  multi_query: z.boolean().nullish(),
  new_decoder_architecture: z.boolean().nullish(),
  num_kv_heads: z.unknown().optional(),
});

/**
 * Returns the object with each size under its most common name, and in `field_names` the names that the file
 * uses.
 */
export function withCommonNames(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const given: Record<string, unknown> = { ...value };
  const names: Record<string, string> = {};
  for (const [common, others] of Object.entries(OTHER_NAMES)) {
    const alias = others.find((name) => (given[name] ?? null) !== null);
    if ((given[common] ?? null) !== null || alias === undefined) continue;
    given[common] = given[alias];
    names[common] = alias;
  }
  const kvHeads = kvHeadFields.safeParse(given);
  const heads = kvHeads.success ? oldKvHeads(kvHeads.data) : null;
  if (heads !== null) {
    given.num_key_value_heads = heads.value;
    names.num_key_value_heads = heads.field;
  }
  return { ...given, field_names: names };
}

/** Multi-query attention has one KV head; Falcon's later architecture has num_kv_heads. */
function oldKvHeads(config: z.infer<typeof kvHeadFields>): { value: unknown; field: string } | null {
  if ((config.num_key_value_heads ?? null) !== null) return null;
  if (config.new_decoder_architecture) return { value: config.num_kv_heads, field: 'num_kv_heads' };
  return config.multi_query ? { value: 1, field: 'multi_query' } : null;
}

/** Describes a required size that the file lacks under each of its names. */
export const missingSize = (name: SizeName): string =>
  `missing, as are its other names ${OTHER_NAMES[name].join(', ')}`;
