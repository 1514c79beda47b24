import { describe, expect, it } from 'vitest';
import { describeFamily, FAMILIES } from '../../../origin/export/families/families.ts';
import { NEUTRAL_FIELDS } from '../../../origin/export/families/reading/known-fields.ts';
import { ModelError } from '../../../origin/model/config/model-json.ts';
import { CASES } from './family-cases.ts';

type Fields = Readonly<Record<string, unknown>>;

const designOf = (config: Fields, tensors: Fields): unknown =>
  describeFamily(config, new Set(Object.keys(tensors))).design;

/** Another value of the same type; for null and objects, one that no family knows. */
function changed(value: unknown): unknown {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value === 0 ? 1 : value * 2;
  if (Array.isArray(value) && value.length > 0) return value.map(changed);
  return 'changed';
}

const withText = CASES.map((one) => {
  const { text_config: text } = one.config;
  return typeof text === 'object' ? { ...one, config: text as Fields, fields: null } : one;
});

const neutralOf = (config: Fields): ReadonlySet<string> => {
  const family = FAMILIES.find(({ modelTypes }) => modelTypes.some((type) => type === config.model_type));
  return new Set([...NEUTRAL_FIELDS, ...(family?.ignored ?? [])]);
};

/** Fields that another field of the same file switches off. */
const SWITCHED_OFF: Readonly<Record<string, readonly string[]>> = {
  qwen2: ['use_sliding_window', 'sliding_window', 'max_window_layers'],
  'qwen2-window': ['max_window_layers'],
  qwen2_moe: ['sliding_window', 'max_window_layers'],
  qwen3: ['use_sliding_window', 'sliding_window', 'max_window_layers'],
  'qwen3-yarn': ['use_sliding_window', 'sliding_window', 'max_window_layers'],
  qwen3_moe: ['use_sliding_window', 'sliding_window'],
  gemma3_text: ['sliding_window_pattern'],
  smollm3: ['use_sliding_window', 'no_rope_layer_interval'],
  'opt-post-norm': ['_remove_final_layer_norm'],
  falcon: ['num_kv_heads'],
  'falcon-new': ['multi_query', 'parallel_attn'],
  'falcon-alibi': ['rope_parameters'],
  exaone4: ['sliding_window_pattern'],
  'exaone4-plain': ['sliding_window_pattern'],
  granitemoehybrid: [
    'intermediate_size',
    ...['mamba_conv_bias', 'mamba_d_conv', 'mamba_d_head', 'mamba_d_state', 'mamba_expand', 'mamba_n_groups'],
    ...['mamba_n_heads', 'mamba_proj_bias', 'num_experts_per_tok', 'time_step_limit'],
  ],
  nemotron_h: [
    ...['moe_intermediate_size', 'moe_shared_expert_intermediate_size', 'n_group', 'n_routed_experts'],
    ...['n_shared_experts', 'norm_topk_prob', 'num_experts_per_tok', 'routed_scaling_factor', 'topk_group'],
  ],
  'nemotron_h-experts': ['intermediate_size'],
  falcon_h1: ['mamba_expand', 'mamba_norm_before_gate'],
  'granitemoehybrid-mamba': ['intermediate_size', 'num_experts_per_tok', 'rope_parameters'],
  lfm2: ['full_attn_idxs'],
  'qwen3_next-types': ['intermediate_size'],
  // The smaller one of both limits the context.
  llama4_text: [
    'attention_chunk_size',
    'interleave_moe_layer_step',
    'max_position_embeddings',
    'no_rope_layer_interval',
  ],
  llama4: ['attention_chunk_size'],
  deepseek_v2: ['n_group', 'topk_group'],
  dots1: ['max_window_layers'],
  'phimoe-longrope': ['max_position_embeddings'],
  ernie4_5_moe: ['moe_layer_end_index'],
  'deepseek_v2-groups': ['intermediate_size'],
  zamba2: ['kv_channels'],
  'zamba2-bias': ['kv_channels', 'rope_parameters'],
  kimi_linear: [
    ...['first_k_dense_replace', 'linear_conv_kernel_dim', 'linear_head_dim', 'linear_num_heads'],
  ],
  'lfm2-bias': ['block_ffn_dim_multiplier', 'block_multiple_of'],
};

describe('the fields of config.json', () => {
  it.each(CASES.map((one) => [one.name, one] as const))(
    'of %s mean the same in the form that transformers 5 writes',
    (_, { config, fields, tensors }) => {
      if (fields === null) return;
      expect(designOf(fields, tensors)).toEqual(designOf(config, tensors));
    },
  );

  it.each(withText.map((one) => [one.name, one] as const))(
    'of %s change the design or are refused, unless they are listed as neutral',
    (name, { config, fields, tensors }) => {
      const all = fields ?? config;
      const design = JSON.stringify(designOf(all, tensors));
      const neutral = neutralOf(all);
      const without = Object.keys(all).filter((field) => {
        if (neutral.has(field)) return false;
        try {
          return JSON.stringify(designOf({ ...all, [field]: changed(all[field]) }, tensors)) === design;
        } catch (error) {
          return !(error instanceof ModelError);
        }
      });
      expect(without).toEqual(SWITCHED_OFF[name] ?? []);
    },
  );

  it.each(withText.map((one) => [one.name, one] as const))(
    'of %s are refused by name if they are unknown',
    (_, { config, tensors }) => {
      expect(() => designOf({ ...config, expert_dropout_gate: 0.5 }, tensors)).toThrow(/expert_dropout_gate/);
    },
  );

  it('name an unknown text model in a known model with images', () => {
    const config = { model_type: 'mistral3', text_config: { model_type: 'mistral5' } };
    expect(() => designOf(config, {})).toThrow(/text_config\.model_type is "mistral5"/);
  });

  it('name an unknown family and the known ones', () => {
    expect(() => designOf({ model_type: 'rwkv' }, {})).toThrow(/model_type is "rwkv".*gpt_neox.*qwen3_moe/);
  });
});
