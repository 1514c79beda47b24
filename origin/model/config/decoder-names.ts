/** What a graph calls its inputs and outputs; `%d` stands for the layer. */
export interface DecoderNames {
  readonly inputIds: string;
  /** Token vectors in place of ids, where another graph embeds them. */
  readonly inputsEmbeds: string;
  readonly attentionMask: string;
  readonly positionIds: string;
  readonly pastKey: string;
  readonly pastValue: string;
  readonly logits: string;
  readonly presentKey: string;
  readonly presentValue: string;
}

/** As Optimum and transformers.js name them, and onnxruntime-genai's builder unless told otherwise. */
export const USUAL_NAMES: DecoderNames = {
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

/** Boolean input [1] of a merged export: false runs the branch that reads no past. */
export const USE_CACHE_BRANCH = 'use_cache_branch';

export const ofLayer = (template: string, layer: number): string => template.replace('%d', `${layer}`);

/** Whether a name is the template's for some layer. */
export function isOfSomeLayer(template: string, name: string): boolean {
  const [before = '', after = ''] = template.split('%d');
  if (!name.startsWith(before) || !name.endsWith(after)) return false;
  return /^\d+$/.test(name.slice(before.length, name.length - after.length));
}
