import { words } from '@continuo/shared/field-names.ts';
import { attentionsOf, type DecoderDesign, type LayerDesign } from '../../design/decoder-design.ts';
import type { MlpDesign } from '../../design/feed-forward-design.ts';
import type { AttentionDesign } from '../../design/mixer-design.ts';
import { activationNames } from './design-parts.ts';

/** Fields of config.json that no logit depends on, in any family. */
export const NEUTRAL_FIELDS = words(`
  architectures model_type torch_dtype dtype transformers_version _name_or_path bos_token_id eos_token_id
  pad_token_id sep_token_id unk_token_id decoder_start_token_id use_cache initializer_range pretraining_tp auto_map
  _attn_implementation attention_dropout attn_pdrop embd_pdrop resid_pdrop dropout layerdrop hidden_dropout
  attention_probs_dropout_prob hidden_dropout_prob classifier_dropout output_hidden_states output_attentions
  return_dict problem_type id2label label2id num_labels _num_labels chunk_size_feed_forward is_decoder
  task_specific_params gradient_checkpointing _attn_implementation_autoset _attn_implementation_internal
  attn_implementation _flash_attn_2_enabled use_flash_attention _commit_hash _experts_implementation unsloth_version unsloth_fixed _unsloth_fix model_name
  name_or_path quantization_config tokenizer_class finetuning_task prefix torchscript use_bfloat16 tf_legacy_loss
  output_past transformers.js_config custom_pipelines
  max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k
  top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size
  bad_words_ids num_return_sequences output_scores return_dict_in_generate forced_bos_token_id
  forced_eos_token_id remove_invalid_values exponential_decay_length_penalty suppress_tokens
  begin_suppress_tokens max_new_tokens
`);

/**
 * Fields of config.json that families do not read, although others do: what each may say because the design
 * has it in any case. Any other value is refused: the file claims something that the family's code in
 * transformers does not compute.
 */

type Values = Readonly<Record<string, readonly unknown[]>>;

const each = (names: string, ...values: readonly unknown[]): Values =>
  Object.fromEntries(words(names).map((name) => [name, values]));

export function knownValues(design: DecoderDesign): Values {
  const [first] = design.layers;
  const norm =
    first!.attentionNorm ?? first!.attentionOutputNorm ?? first!.afterAttentionNorm ?? first!.feedForwardNorm;
  return {
    ...sizesOf(design),
    ...valuesOfAttention(design),
    ...valuesOfFeedForward(design),
    ...each('rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon', norm?.epsilon),
    ...each('norm_type normalization_function', ...NORM_NAMES[norm?.kind ?? 'layer']),
    ...each('lm_head_bias', design.head.bias !== null),
    ...each('parallel_attn use_parallel_block use_parallel_residual', first!.residual !== 'sequential'),
    ...each('learned_embeddings', design.learnedPositions !== null),
    ...each('scale_embeddings', design.embeddingScale !== 1),
    ...CONSTANTS,
  };
}

function valuesOfAttention(design: DecoderDesign): Values {
  const attentions = attentionsOf(design);
  const [attention] = attentions;
  if (attention === undefined) return {};
  const { heads, kvHeads, query, queryNorm, clip, slopes, scale } = attention;
  // transformers counts what is rotated as the head of latent attention.
  const headSize = attention.latent?.sharedSize ?? attention.headSize;
  return {
    ...each('num_attention_heads n_head n_heads num_heads', heads),
    ...each('num_key_value_heads num_kv_heads n_head_kv', kvHeads),
    ...each('head_dim attention_head_dim kv_channels', headSize),
    ...rotaryOf(
      attentions.flatMap(({ rotary }) => rotary ?? []),
      headSize,
    ),
    ...each('attention_bias qkv_bias use_qkv_bias', query.bias !== null),
    ...each('qk_norm use_qk_norm qk_layernorm', queryNorm !== null),
    ...each('clip_qkv', clip),
    ...each('alibi', slopes !== null),
    ...each('scale_attn_weights normalize_attention_scores', scale === 1 / Math.sqrt(attention.headSize)),
    ...each(
      'use_sliding_window',
      attentions.some(({ window }) => window !== null),
    ),
  };
}

function valuesOfFeedForward({ layers }: DecoderDesign): Values {
  const feedForwards = layers.flatMap(({ feedForward }) => feedForward ?? []);
  const [feedForward] = feedForwards;
  if (feedForward === undefined) return {};
  const mlp = mlpOf(feedForward);
  const sparse = feedForwards.find(({ kind }) => kind !== 'mlp');
  return {
    ...each('intermediate_size n_inner ffn_dim ffn_hidden_size', mlp.width),
    ...each('hidden_act hidden_activation activation_function activation', ...activationNames(mlp)),
    ...each('use_gated_activation', mlp.gate !== null),
    ...each('num_experts num_local_experts', ...(sparse === undefined ? [0, 1] : [expertsOf(sparse).length])),
    ...each('mlp_bias', mlp.up.bias !== null),
  };
}

type FeedForward = NonNullable<LayerDesign['feedForward']>;

function expertsOf(feedForward: FeedForward): readonly MlpDesign[] {
  if (feedForward.kind === 'mlp') return [];
  return feedForward.kind === 'experts' ? feedForward.experts : feedForward.experts.experts;
}

function mlpOf(feedForward: FeedForward): MlpDesign {
  if (feedForward.kind === 'mlp') return feedForward;
  return feedForward.kind === 'experts' ? feedForward.experts[0]! : feedForward.mlp;
}

const sizesOf = ({ hidden, layers, maxPositions }: DecoderDesign): Values => ({
  ...each('hidden_size n_embd n_embed d_model', hidden),
  ...each('num_hidden_layers n_layer n_layers num_layers', layers.length),
  ...each(
    'max_position_embeddings n_positions max_seq_len',
    ...(maxPositions < Infinity ? [maxPositions] : []),
  ),
});

/** A field that speaks of all layers must be true of all of them. */
function rotaryOf(rotary: readonly NonNullable<AttentionDesign['rotary']>[], headSize: number): Values {
  const [first] = rotary;
  if (first === undefined) return each('rotary use_rotary_pos_emb', false);
  const dimensions = 2 * first.frequencies.length;
  const shares = each(
    'partial_rotary_factor rotary_pct rotary_percent rotary_percentage rope_pct rope_percent',
    dimensions / headSize,
  );
  return {
    ...shares,
    ...each(
      'rope_theta rotary_emb_base',
      ...(rotary.every(({ base }) => base === first.base) ? [first.base] : []),
    ),
    ...each('rotary_dim attn_rotary_emb', dimensions),
    ...each('rope_interleaved rotary_interleaved', first.interleaved),
    ...each('rotary use_rotary_pos_emb', true),
    ...each('rotary_scaling_factor rope_scaling_factor', 1),
  };
}

const NORM_NAMES = {
  rms: ['rms', 'hf_rms', 'rmsnorm', 'rms_norm'],
  layer: ['layer_norm', 'low_precision_layernorm'],
};

/** What no family has. */
const CONSTANTS: Values = {
  ...each('is_encoder_decoder add_cross_attention tie_encoder_decoder use_mrope', false),
  ...each('apply_residual_connection_post_layernorm use_cla use_mla post_norm', false),
  ...each('add_classification_head position_embedding_xdrope', false),
  ...each('layer_norm_elementwise_affine is_llama_config use_embedding_sharing', true),
  ...each('full_attn_mod interpolate_factor num_shared_expert', 1),
};
