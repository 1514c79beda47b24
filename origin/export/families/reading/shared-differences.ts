import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from './config-fields.ts';
import type { Differences, RowContext } from './decoder-row.ts';

/** Differences from Llama that rows of several rooms have. */

export const attentionBias = (fields: ConfigFields, field = 'attention_bias', absent = false) => {
  const qkv = fields.flag(field, absent);
  return { qkv, output: qkv };
};

export const mlpBias = (fields: ConfigFields) => ({ mlp: fields.flag('mlp_bias', false) });

/** OLMo 2 and EXAONE 4 normalize what attention and MLP return, not what they read. */
export const NORMS_AFTER = {
  attentionNorm: '',
  feedForwardNorm: '',
  attentionOutputNorm: 'post_attention_layernorm',
  feedForwardOutputNorm: 'post_feedforward_layernorm',
};

export function graniteFactors({ fields }: RowContext): Differences {
  return {
    residualScale: fields.number('residual_multiplier', 1),
    attention: { scale: fields.number('attention_multiplier', 1) },
    decoder: {
      embeddingScale: fields.number('embedding_multiplier', 1),
      logitScale: 1 / fields.number('logits_scaling', 1),
    },
  };
}

/** How queries grow with their position, as Ministral 3 and Mistral 4 write it beside the scaling. */
export function readQueryScaling(fields: ConfigFields) {
  const parameters = fields.inner('rope_parameters');
  if (parameters === null) throw fields.fault('rope_parameters', 'an object');
  parameters.ignore('max_position_embeddings');
  const queryScaling = {
    beta: parameters.number('llama_4_scaling_beta'),
    originalPositions: parameters.count('original_max_position_embeddings'),
    first: 0 as const,
  };
  fields.require('original_max_position_embeddings', queryScaling.originalPositions);
  return queryScaling;
}

/**
 * Fields of other models of HunYuan's, with images, experts or other attention, that the dense ones' files
 * also have.
 */
export const HUNYUAN_FAMILY = words(`
  eod_token_id pad_id im_start_id im_end_id im_newline_id text_start_id text_end_id image_token_id video_start_id video_end_id
  mask_init_id org_vocab_size dense_list class_num pool_type skip_cls_token cla_share_factor xdrope_section
  vit_path vit_type vit_input_resolution vit_token vit_patch vit_mapping_type vit_norm_type vit_used_rms_norm
  vit_remove_prenorm vit_add_patchemb_bias num_media_embeds anyres_vit_max_image_size anyres_vit_two_views
  anyres_pooling_size moe_intermediate_size moe_topk moe_layer_num_skipped moe_drop_tokens capacity_factor
  moe_random_routing_dropped_token use_mixed_mlp_moe norm_topk_prob routed_scaling_factor group_limited_greedy n_group
  topk_group kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim
`);

/** What HunYuan's dense models and those with experts have. */
export const hunyuan = (fields: ConfigFields): Differences => ({
  biases: attentionBias(fields),
  names: { queryNorm: 'self_attn.query_layernorm', keyNorm: 'self_attn.key_layernorm' },
  headNorm: { over: 'head' },
  attention: { normPlace: 'after-rotary' },
  rotary: { growing: true },
});
