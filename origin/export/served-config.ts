import type { DecoderDesign } from './families/decoder-design.ts';

/**
 * Returns config.json of a built model. It is the published one, with the fields of a nested text_config beside the others, and
 * with the sizes that a published file may leave to its family.
 */
export function servedConfig(
  config: Readonly<Record<string, unknown>>,
  design: DecoderDesign,
): Record<string, unknown> {
  const { text_config: text, vision_config: _, ...others } = config;
  const { heads, kvHeads, headSize } = design.layers[0]!.attention;
  return {
    ...others,
    ...(typeof text === 'object' ? text : {}),
    vocab_size: design.vocabulary,
    hidden_size: design.hidden,
    num_hidden_layers: design.layers.length,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headSize,
    ...(design.maxPositions < Infinity ? { max_position_embeddings: design.maxPositions } : {}),
  };
}
