import * as z from 'zod';
import { DEFAULT_NAMES, type DecoderNames } from './decoder-names.ts';
import { count, ModelError, type ModelTexts, readModelJson, tokenIds } from './model-json.ts';

/** Reads genai_config.json, which onnxruntime-genai's model builder writes beside the graph. */

export const GENAI_CONFIG = 'genai_config.json';

const name = z.string().min(1);
const template = z.string().regex(/^[^%]*%d[^%]*$/, 'must contain %d, the layer, exactly once');

const schema = z.object({
  model: z.object({
    type: z.string().optional(),
    context_length: count,
    vocab_size: count,
    bos_token_id: tokenIds.nullish(),
    eos_token_id: tokenIds.nullish(),
    decoder: z.object({
      filename: name,
      head_size: count,
      num_attention_heads: count,
      num_hidden_layers: count,
      num_key_value_heads: count,
      pipeline: z.unknown().optional(),
      sliding_window: z.object({ window_size: count }).nullish(),
      inputs: z
        .object({
          input_ids: name.optional(),
          attention_mask: name.optional(),
          position_ids: name.optional(),
          past_key_names: template.optional(),
          past_value_names: template.optional(),
        })
        .optional(),
      outputs: z
        .object({
          logits: name.optional(),
          present_key_names: template.optional(),
          present_value_names: template.optional(),
        })
        .optional(),
    }),
  }),
});

export type GenaiModel = z.infer<typeof schema>['model'];

/**
 * Returns undefined if the directory has none.
 * @throws ModelError
 */
export function readGenaiConfig(texts: ModelTexts): GenaiModel | undefined {
  const model = readModelJson(texts, GENAI_CONFIG, schema)?.model;
  if (model?.decoder.pipeline !== undefined) {
    throw new ModelError(
      `${GENAI_CONFIG}: model.decoder.pipeline: decoders split into several graphs are not supported`,
    );
  }
  return model;
}

export function genaiNames({ decoder: { inputs, outputs } }: GenaiModel): DecoderNames {
  return {
    inputIds: inputs?.input_ids ?? DEFAULT_NAMES.inputIds,
    inputsEmbeds: DEFAULT_NAMES.inputsEmbeds,
    attentionMask: inputs?.attention_mask ?? DEFAULT_NAMES.attentionMask,
    positionIds: inputs?.position_ids ?? DEFAULT_NAMES.positionIds,
    pastKey: inputs?.past_key_names ?? DEFAULT_NAMES.pastKey,
    pastValue: inputs?.past_value_names ?? DEFAULT_NAMES.pastValue,
    logits: outputs?.logits ?? DEFAULT_NAMES.logits,
    presentKey: outputs?.present_key_names ?? DEFAULT_NAMES.presentKey,
    presentValue: outputs?.present_value_names ?? DEFAULT_NAMES.presentValue,
  };
}
