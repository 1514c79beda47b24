import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { DecoderDesign } from '../design/decoder-design.ts';
import { ALIBI_ROWS } from './attention/alibi-rows.ts';
import { GEMMA_ROWS } from './attention/gemma-rows.ts';
import { GEMMA3N_ROWS } from './attention/gemma3n-rows.ts';
import { GEMMA4_ROWS } from './attention/gemma4-rows.ts';
import { GPT_ROWS } from './attention/gpt-rows.ts';
import { LAYER_NORM_ROWS } from './attention/layer-norm-rows.ts';
import { LLAMA_ROWS } from './attention/llama-rows.ts';
import { EXPERT_ROWS } from './experts/expert-rows.ts';
import { LATENT_ROWS } from './experts/latent-rows.ts';
import { LLAMA4_ROWS } from './experts/llama4-rows.ts';
import { ROUTED_ROWS } from './experts/routed-rows.ts';
import { ConfigFields } from './reading/config-fields.ts';
import type { DecoderRow } from './reading/decoder-row.ts';
import { describeRow } from './reading/describe-row.ts';
import { knownValues, NEUTRAL_FIELDS } from './reading/known-fields.ts';
import { requireAttention } from './reading/sizes.ts';
import { CONVOLUTION_ROWS } from './states/convolution-rows.ts';
import { KIMI_ROWS } from './states/kimi-rows.ts';
import { LINEAR_ATTENTION_ROWS } from './states/linear-attention-rows.ts';
import { NEMOTRON_ROWS } from './states/nemotron-rows.ts';
import { RECURRENT_GEMMA_ROWS } from './states/recurrent-gemma-rows.ts';
import { STATE_SPACE_ROWS } from './states/state-space-rows.ts';
import { ZAMBA_ROWS } from './states/zamba-rows.ts';

/** The table of families. */
export const FAMILIES: readonly DecoderRow[] = [
  ...LLAMA_ROWS,
  ...LLAMA4_ROWS,
  ...LAYER_NORM_ROWS,
  ...GEMMA_ROWS,
  ...GEMMA3N_ROWS,
  ...GEMMA4_ROWS,
  ...RECURRENT_GEMMA_ROWS,
  ...EXPERT_ROWS,
  ...GPT_ROWS,
  ...ALIBI_ROWS,
  ...CONVOLUTION_ROWS,
  ...LINEAR_ATTENTION_ROWS,
  ...STATE_SPACE_ROWS,
  ...NEMOTRON_ROWS,
  ...ZAMBA_ROWS,
  ...LATENT_ROWS,
  ...KIMI_ROWS,
  ...ROUTED_ROWS,
];

const PREFIXES = ['model.', '', 'model.language_model.'];

export interface DescribedDecoder {
  readonly modelType: string;
  readonly design: DecoderDesign;
  /** The checkpoint's name of a tensor of the design. */
  readonly storedName: (name: string) => string;
}

/** The names of the tensors of a checkpoint. */
interface TensorNames {
  has(name: string): boolean;
}

type Config = Readonly<Record<string, unknown>>;

/**
 * Describes the decoder of a config.json. Models with images have their decoder's fields in text_config.
 * @throws ModelError that names an unknown model_type, a field that no row reads, or a value that is not
 *   supported
 */
export function describeFamily(config: Config, tensors: TensorNames): DescribedDecoder {
  const { family, fields, ...described } = describeOfAnySize(config, tensors);
  requireAttention(family, fields, described.design);
  return described;
}

/** As describeFamily, but heads may have sizes that cannot be served. */
export function describeOfAnySize(config: Config, tensors: TensorNames) {
  const outer = new ConfigFields(config);
  const text = outer.inner('text_config');
  const given = text ?? outer;
  const modelType = given.text('model_type', '');
  const outerType = outer.text('model_type', '');
  const family = FAMILIES.find(
    ({ modelTypes, within = [] }) =>
      modelTypes.includes(modelType) && (text === null || within.includes(outerType)),
  );
  if (family === undefined) {
    const types = FAMILIES.flatMap(({ modelTypes, within = [] }) => [...modelTypes, ...within]).toSorted();
    const unknown = FAMILIES.some(({ within }) => within?.includes(outerType)) ? given : outer;
    throw unknown.fault('model_type', `one of ${types.join(', ')}`);
  }
  const fields = given.withDefaults(family.defaults ?? {});
  const [canonical = '', ...others] = family.prefixes ?? PREFIXES;
  const aliases = Object.entries(family.aliases ?? {});
  const storedName = (name: string) => {
    const inner = name.startsWith(canonical) ? name.slice(canonical.length) : null;
    const alternatives = inner === null ? [] : others.map((prefix) => prefix + inner);
    const placed = [name, `language_model.${name}`, ...alternatives];
    const renamed = aliases.flatMap(([part, alias]) =>
      placed.map((candidate) => candidate.replace(part, alias)),
    );
    return [...placed, ...renamed].find((candidate) => tensors.has(candidate)) ?? name;
  };
  const design = describeRow(family, fields, outer);
  fields.ignore(...NEUTRAL_FIELDS, ...(family.ignored ?? []));
  fields.agree(knownValues(design));
  const [unread] = fields.unread;
  if (unread === undefined) return { modelType, design, storedName, family, fields };
  throw new ModelError(
    `config.json: field ${unread} is unknown for model_type ${modelType}, so its effect on the logits is unknown; remove it if it has none`,
  );
}
