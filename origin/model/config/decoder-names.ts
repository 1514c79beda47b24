/** Names of a graph's inputs and outputs; `%d` is the layer. */
export interface DecoderNames {
  readonly inputIds: string;
  /** Token vectors instead of ids, if another graph embeds them. */
  readonly inputsEmbeds: string;
  readonly attentionMask: string;
  readonly positionIds: string;
  readonly pastKey: string;
  readonly pastValue: string;
  readonly logits: string;
  readonly presentKey: string;
  readonly presentValue: string;
}

/** Names used by Optimum and transformers.js, and by default by onnxruntime-genai's builder. */
export const DEFAULT_NAMES: DecoderNames = {
  inputIds: 'input_ids',
  inputsEmbeds: 'inputs_embeds',
  attentionMask: 'attention_mask',
  positionIds: 'position_ids',
  pastKey: 'past_key_values.%d.key',
  pastValue: 'past_key_values.%d.value',
  logits: 'logits',
  presentKey: 'present.%d.key',
  presentValue: 'present.%d.value',
};

/** int32 [batch]: the last position of each row, new tokens included. GroupQueryAttention's seqlens_k. */
export const LAST_POSITIONS = 'continuo/seqlens_k';
/** int32 scalar in CPU memory: at least as many positions as the longest row has. */
export const TOTAL_LENGTH = 'continuo/total_sequence_length';
/** int64 [logit_rows]: indices into the flattened [batch · sequence] positions. */
export const LOGITS_INDEX = 'logits_index';

/** int64 [] or [1]: how many last positions get logits; 0 = all. transformers.js feeds it. */
export const LOGITS_TO_KEEP = 'num_logits_to_keep';

/** Boolean input [1] of a merged export; false runs the branch without a past. */
export const USE_CACHE_BRANCH = 'use_cache_branch';

/**
 * In graphs of origin/export: outputs of a layer without KV of its own, bound to the KV that it reads. The
 * operator for attention demands them and writes nothing there.
 */
export const SHARED_KEY = 'shared.%d.key';
export const SHARED_VALUE = 'shared.%d.value';

/** States in graphs of origin/export: the last inputs of a convolution, [batch, channels, positions]. */
export const PAST_CONVOLUTION = 'past_states.%d.convolution';
export const PRESENT_CONVOLUTION = 'present_states.%d.convolution';
/** The state of linear attention, [batch, heads, key size, value size]. */
export const PAST_RECURRENCE = 'past_states.%d.recurrence';
export const PRESENT_RECURRENCE = 'present_states.%d.recurrence';

export const layerName = (template: string, layer: number): string => template.replace('%d', `${layer}`);

/** Reports whether a name matches the template for any layer. */
export function isLayerName(template: string, name: string): boolean {
  const [before = '', after = ''] = template.split('%d');
  if (!name.startsWith(before) || !name.endsWith(after)) return false;
  return /^\d+$/.test(name.slice(before.length, name.length - after.length));
}

/** Returns the layer of a name that `isLayerName` accepts. */
export const layerOf = (template: string, name: string): number => {
  const [before = '', after = ''] = template.split('%d');
  return Number(name.slice(before.length, name.length - after.length));
};
