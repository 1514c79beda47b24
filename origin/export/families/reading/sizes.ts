import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { attentionsOf, type DecoderDesign } from '../../design/decoder-design.ts';
import type { ConfigFields } from './config-fields.ts';

/** The sizes of a decoder, and their fields in config.json. */

const SIZE_FIELDS = {
  vocabulary: ['vocab_size'],
  hidden: ['hidden_size'],
  layers: ['num_hidden_layers'],
  heads: ['num_attention_heads'],
  kvHeads: ['num_key_value_heads'],
  headSize: ['head_dim'],
  width: ['intermediate_size'],
  positions: ['max_position_embeddings'],
};

export type Sizes = Readonly<Record<keyof typeof SIZE_FIELDS, number>>;

/** Where a family has its sizes. What is absent is as in Llama. */
export interface SizeRules {
  /** Names in config.json of sizes that have another name than in Llama. */
  readonly sizeFields?: Partial<Readonly<Record<keyof typeof SIZE_FIELDS, readonly string[]>>>;
  /** Counts the layers, where config.json may not have their number. */
  readonly layers?: (fields: ConfigFields) => number;
  /** True if the model has no limit of positions (ALiBi) unless config.json has one. */
  readonly unlimited?: boolean;
}

type SizeNames = Readonly<Record<keyof Sizes, readonly string[]>>;

/** @throws ModelError that names a field which is missing, or is no positive integer */
export function readSizes(fields: ConfigFields, row: SizeRules): Sizes {
  const names: SizeNames = { ...SIZE_FIELDS, ...row.sizeFields };
  const count = (size: keyof Sizes, absent?: number): number => {
    const name = names[size].find((alternative) => fields.has(alternative));
    return name === undefined && absent !== undefined ? absent : fields.count(name ?? names[size][0]!);
  };
  const hidden = count('hidden');
  const heads = count('heads');
  const hasPositions = names.positions.some((name) => fields.has(name));
  return {
    hidden,
    heads,
    vocabulary: count('vocabulary'),
    layers: count('layers', row.layers?.(fields)),
    kvHeads: count('kvHeads', heads),
    headSize: count('headSize', hidden / heads),
    width: count('width', 4 * hidden),
    positions: hasPositions || row.unlimited !== true ? count('positions') : Infinity,
  };
}

const HEAD_MULTIPLE = 8;

/** Refuses sizes that the operator for attention does not have. @throws ModelError that names a field */
export function requireAttention(row: SizeRules, fields: ConfigFields, design: DecoderDesign): void {
  const [attention] = attentionsOf(design);
  if (attention === undefined) return;
  const { heads, kvHeads, headSize } = attention;
  const names: SizeNames = { ...SIZE_FIELDS, ...row.sizeFields };
  const given = (size: keyof Sizes) => names[size].find((name) => fields.has(name));
  if (heads % kvHeads !== 0)
    throw fields.fault(given('kvHeads') ?? names.heads[0]!, `a divisor of the ${heads} heads`);
  if (attentionsOf(design).some(({ scale }) => scale === 0)) {
    throw new ModelError('config.json: a multiplier makes the scores of attention 0; supported are others');
  }
  for (const { headSize: size, kvHeads: layerKvHeads } of attentionsOf(design)) {
    if (size !== headSize && size % HEAD_MULTIPLE !== 0)
      throw new ModelError(`config.json: some heads have ${size} values; supported is a multiple of 8`);
    if (heads % layerKvHeads !== 0)
      throw new ModelError(
        `config.json: some layers have ${layerKvHeads} KV heads; supported is a divisor of ${heads}`,
      );
  }
  if (headSize % HEAD_MULTIPLE === 0) return;
  const sizeField = given('headSize');
  const allowed = `a multiple of ${HEAD_MULTIPLE}`;
  if (sizeField !== undefined) throw fields.fault(sizeField, allowed);
  throw fields.fault(given('hidden')!, `${heads} heads times ${allowed}`);
}
