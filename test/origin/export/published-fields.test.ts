import { describe, expect, it } from 'vitest';
import { attentionsOf } from '../../../origin/export/design/decoder-design.ts';
import { describeFamily } from '../../../origin/export/families/families.ts';
import { CASES } from './family-cases.ts';

/** Fields that published files have beside those that transformers reads, and its former forms. */

type Fields = Readonly<Record<string, unknown>>;

const caseOf = (name: string) => CASES.find((one) => one.name === name)!;
const designOf = (config: Fields) => describeFamily(config, new Set()).design;

/** The parameters of generation and the bookkeeping that transformers wrote to config.json before 4.41. */
const OLD_DUMP: Fields = {
  max_length: 4096,
  min_length: 0,
  do_sample: true,
  temperature: 0.6,
  top_k: 50,
  top_p: 0.9,
  num_beams: 1,
  repetition_penalty: 1.1,
  no_repeat_ngram_size: 0,
  forced_eos_token_id: 2,
  early_stopping: false,
  pruned_heads: {},
  add_cross_attention: false,
  tie_encoder_decoder: false,
  is_encoder_decoder: false,
  tokenizer_class: 'LlamaTokenizer',
  torchscript: false,
  use_bfloat16: false,
  tf_legacy_loss: false,
};

const LLAMA3: Fields = { rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 };

/** Fields of the family's other models: with images, experts or other attention. */
const HUNYUAN: Fields = {
  use_cla: false,
  cla_share_factor: 2,
  use_mla: false,
  use_rotary_pos_emb: true,
  qk_norm: true,
  norm_type: 'rms',
  attention_head_dim: 128,
  eod_token_id: 3,
  im_start_id: 5,
  mask_init_id: 12,
  org_vocab_size: 250,
  dense_list: [96, 0],
  num_experts: 1,
  num_shared_expert: 1,
  moe_topk: 1,
  moe_drop_tokens: false,
  vit_patch: 1,
  vit_norm_type: 'fused',
  anyres_pooling_size: 2,
  position_embedding_xdrope: false,
  add_classification_head: false,
  class_num: 0,
};

describe('config.json as published', () => {
  it.each([
    ['SmolLM2', 'llama', { is_llama_config: true, rope_interleaved: false, 'transformers.js_config': {} }],
    ['Falcon 3', 'llama', { activation: 'swiglu' }],
    ['LLaMA', 'llama', { max_sequence_length: 2048 }],
    ['Llama with an old dump', 'llama', OLD_DUMP],
    ['GPT-2 medium and large', 'gpt2', { n_special: 0, predict_special_tokens: true }],
    ['GPT-2 XL', 'gpt2', { output_past: true }],
    ['DistilGPT-2', 'gpt2', { _num_labels: 1 }],
    [
      'Galactica',
      'opt',
      { learned_embeddings: true, scale_embeddings: false, _remove_final_layer_norm: false },
    ],
    ['GPT-SW3', 'gpt2', { apply_query_key_layer_scaling: true, normalize_attention_scores: true }],
    ['Hunyuan Pretrain', 'hunyuan_v1_dense', HUNYUAN],
    ['Stable LM 2 12B', 'stablelm', { rotary_scaling_factor: 1 }],
    [
      'Minitron 8B',
      'nemotron',
      { layer_norm_eps: 1e-5, rope_percent: 0.5, kv_channels: 96, unk_token_id: 0 },
    ],
    [
      'DeepSeek V3',
      'deepseek_v3',
      { aux_loss_alpha: 1e-4, seq_aux: true, ep_size: 1, moe_layer_freq: 1, num_nextn_predict_layers: 1 },
    ],
    ['ERNIE 4.5 21B', 'ernie4_5_moe', { use_rmsnorm: true, moe_gate: 'topk', num_nextn_predict_layers: 1 }],
    [
      'MiniMax M2',
      'minimax_m2',
      { mlp_intermediate_size: 8192, layernorm_mlp_beta: 1, use_mtp: true, num_mtp_modules: 3 },
    ],
    [
      'Hunyuan A13B',
      'hunyuan_v1_moe',
      { use_cla: false, norm_type: 'rms', group_limited_greedy: false, capacity_factor: 1, class_num: 0 },
    ],
    ['Qwen 3.6 27B', 'qwen3_5_text', { output_gate_type: 'swish', partial_rotary_factor: 0.25 }],
    ['Qwen 3 Coder', 'qwen3_moe', { shared_expert_intermediate_size: 0, use_qk_norm: true }],
    [
      'Nemotron 3 Nano',
      'nemotron_h-experts',
      { rope_theta: 10_000, partial_rotary_factor: 1, norm_eps: 1e-5 },
    ],
    ['LLaMA 2 7B 32K', 'llama-linear', { max_sequence_length: 32_768, _flash_attn_2_enabled: true }],
  ])('of %s may have its fields that no logit depends on', (_, name, fields) => {
    const { config } = caseOf(name);
    expect(designOf({ ...config, ...fields })).toEqual(designOf(config));
  });

  it.each([
    ['llama', { rope_interleaved: true }, /rope_interleaved is true; supported is false/],
    ['llama', { activation: 'gelu' }, /activation is "gelu"; supported is .*"swiglu"/],
    ['hunyuan_v1_dense', { use_cla: true }, /use_cla is true; supported is false/],
    ['stablelm', { rotary_scaling_factor: 2 }, /rotary_scaling_factor is 2; supported is 1/],
    [
      'llama-dynamic',
      { rope_scaling: { type: 'dynamic', alpha: 2 } },
      /rope_scaling\.alpha is 2; supported is 1/,
    ],
    [
      'olmo3',
      { rope_scaling: { type: 'linear', factor: 2 } },
      /rope_scaling\.type is "linear"; supported is "default"/,
    ],
    [
      'gpt_neo',
      { attention_layers: ['local', 'global', 'local', 'global'] },
      /attention_layers is .*; supported is/,
    ],
    ['mpt', { attn_config: { alibi_bias_max: 16 } }, /attn_config\.alibi_bias_max is 16; supported is 8/],
    [
      'llama-llama3',
      { rope_scaling: { ...LLAMA3, low_freq_factor: -1 } },
      /low_freq_factor is -1; supported is above 0/,
    ],
    ['olmo3', { rope_theta: 10_000 }, /rope_theta is 10000; supported is 500000/],
    ['olmo3', { original_max_position_embeddings: 8 }, /original_max_position_embeddings is 8; supported is/],
    ['olmo3', { rope_parameters: { rope_type: 'default' } }, /rope_parameters\.full_attention is missing/],
    [
      'gemma3_text',
      { rope_parameters: { rope_type: 'default' } },
      /rope_parameters\.full_attention is missing/,
    ],
    [
      'llama-new-form',
      { rope_scaling: { type: 'linear', factor: 2 } },
      /rope_scaling is {.*}; supported is {.*20000/,
    ],
    ['llama-new-form', { rope_theta: 10_000 }, /rope_theta is 10000; supported is 20000/],
    ['gpt2', { pruned_heads: { 0: [1, 2] } }, /field pruned_heads\.0 is unknown/],
    ['gpt2', { add_cross_attention: true }, /add_cross_attention is true; supported is false/],
    ['minicpm', { rope_scaling: { type: 'dynamic' } }, /rope_scaling is {.*}; supported is null$/],
    [
      'granitemoehybrid',
      { layer_types: ['attention', 'conv'] },
      /layer_types is .*"conv".*; supported is 2 of/,
    ],
    ['granitemoehybrid', { layer_types: ['mamba', 'mamba'] }, /layer_types is .*one of attention/],
    ['granitemoehybrid', { layer_types: ['attention'] }, /layer_types is \["attention"\]; supported is 2 of/],
    ['granitemoehybrid', { layer_types: undefined }, /layer_types is missing; supported is 2 of/],
    [
      'granitemoehybrid',
      { position_embedding_type: 'alibi' },
      /position_embedding_type is "alibi"; supported/,
    ],
    ['granitemoehybrid', { attention_multiplier: 0 }, /multiplier makes the scores of attention 0/],
    ['bamba', { attn_layer_indices: null }, /attn_layer_indices is null; supported is a layer of attention/],
    ['bamba', { mamba_d_head: 64 }, /mamba_d_head is 64; supported is 32 or "auto"/],
    ['bamba', { mamba_n_heads: 7 }, /mamba_n_heads is 7; supported is a divisor of the width 192/],
    ['bamba', { mamba_n_groups: 4 }, /mamba_n_groups is 4; supported is a divisor of the 6 heads/],
    ['bamba', { mamba_d_conv: 1 }, /mamba_d_conv is 1; supported is at least 2/],
    ['bamba', { time_step_limit: [1, 0] }, /time_step_limit is \[1,0\]; supported is two numbers/],
    ['falcon_h1', { ssm_multipliers: [1, 2] }, /ssm_multipliers is \[1,2\]; supported is 5 numbers/],
    ['falcon_h1', { key_multiplier: 0 }, /multiplier makes the scores of attention 0/],
    ['nemotron_h', { hybrid_override_pattern: 'M-X*' }, /hybrid_override_pattern is "M-X\*"; supported is/],
    ['nemotron_h', { hybrid_override_pattern: 'M-M-' }, /hybrid_override_pattern is .* a layer of attention/],
    ['nemotron_h', { num_hidden_layers: 9 }, /num_hidden_layers is 9; supported is 8/],
    ['nemotron_h', { layers_block_type: ['mamba'] }, /layers_block_type is \["mamba"\]; supported is/],
    ['nemotron_h-experts', { moe_latent_size: 64 }, /moe_latent_size is 64; supported is null/],
    ['nemotron_h-experts', { n_group: 1, topk_group: 2 }, /topk_group is 2; supported is 1/],
    ['qwen3_5_text', { output_gate_type: 'sigmoid' }, /output_gate_type is "sigmoid"; supported is "swish"/],
    ['nemotron_h-experts', { mlp_bias: true }, /mlp_bias is true; supported is false/],
    ['mamba2', { head_dim: 24 }, /head_dim is 24; supported is 16/],
    ['mamba2', { n_groups: 2 }, /n_groups is 2; supported is a divisor of the 9 heads/],
    ['zamba2', { tie_word_embeddings: false }, /tie_word_embeddings is false; supported is true/],
    ['zamba2', { use_long_context: true }, /use_long_context is true; supported is false/],
    ['zamba2', { hybrid_layer_ids: [0, 2] }, /hybrid_layer_ids is \[0,2\]; supported is \[0,1,2\]/],
    ['kimi_linear', { mla_use_nope: false }, /mla_use_nope is false; supported is true/],
    [
      'kimi_linear',
      { linear_attn_config: { full_attn_layers: [2, 4], kda_layers: [1], head_dim: 20, num_heads: 3 } },
      /linear_attn_config is .*; supported is each of 4 layers in one list/,
    ],
    ['deepseek_v2', { norm_topk_prob: true }, /norm_topk_prob is true; supported is false/],
    ['deepseek_v3', { scoring_func: 'softmax' }, /scoring_func is "softmax"; supported is "sigmoid"/],
    ['deepseek_v3', { n_group: 5 }, /n_group is 5; supported is with topk_group, groups of the 12 experts/],
    ['deepseek_v3', { num_experts_per_tok: 7 }, /num_experts_per_tok is 7; supported is at most 6/],
    ['deepseek_v3', { routed_scaling_factor: -1 }, /routed_scaling_factor is -1; supported is above 0/],
    ['deepseek_v3', { v_head_dim: 72 }, /v_head_dim is 72; supported is at most 64/],
    ['minicpm3', { num_key_value_heads: 2 }, /num_key_value_heads is 2; supported is 4/],
    [
      'hunyuan_v1_moe',
      { moe_topk: [3, 2] },
      /moe_topk is \[3,2\]; supported is the same whole number of at least 1 for 2 layers/,
    ],
    [
      'hunyuan_v1_moe',
      { moe_topk: [0, 0] },
      /moe_topk is \[0,0\]; supported is the same whole number of at least 1 for 2 layers/,
    ],
    ['phimoe', { num_experts_per_tok: 3 }, /num_experts_per_tok is 3; supported is 2/],
    ['ministral3', { rope_parameters: null }, /rope_parameters is null; supported is an object/],
  ])('of %s is refused with %j', (name, fields, message) => {
    expect(() => designOf({ ...caseOf(name).config, ...fields })).toThrow(message);
  });

  it('of LLaMA may name its context max_sequence_length', () => {
    const { max_position_embeddings: positions, ...config } = caseOf('llama').config;
    expect(designOf({ ...config, max_sequence_length: positions })).toEqual(designOf(caseOf('llama').config));
  });

  it('of Phi 3 may name the original context twice, of which the outer one counts', () => {
    const { config } = caseOf('phi3-longrope');
    const scaling = { ...(config.rope_scaling as Fields), original_max_position_embeddings: 64 };
    expect(designOf({ ...config, rope_scaling: scaling })).toEqual(designOf(config));
  });

  it.each([
    { rope_scaling: undefined },
    { rope_scaling: null },
    { rope_parameters: null, rope_scaling: undefined },
  ])('of gpt-oss means YaRN by 32 without scaling: %j', (fields) => {
    const { config } = caseOf('gpt_oss');
    const scaling = {
      rope_type: 'yarn',
      factor: 32,
      truncate: false,
      original_max_position_embeddings: 4096,
    };
    expect(designOf({ ...config, ...fields })).toEqual(designOf({ ...config, rope_scaling: scaling }));
  });

  it('of Nemotron 3 Nano may have one group of experts', () => {
    const { topk_group: _, ...config } = caseOf('nemotron_h-experts').config;
    expect(designOf({ ...config, n_group: 1, topk_group: 1 })).toEqual(designOf({ ...config, n_group: 1 }));
  });

  it('of Llama 4 Scout may scale its frequencies by a step', () => {
    const { config } = caseOf('llama4_text');
    const scaling = { ...LLAMA3, factor: 16, high_freq_factor: 1, original_max_position_embeddings: 64 };
    const { frequencies } = attentionsOf(designOf({ ...config, rope_scaling: scaling }))[0]!.rotary!;
    // By transformers: the last one that turns once or more, and the first one of the others.
    expect(frequencies[4]! / 0.11225).toBeCloseTo(1, 4);
    expect(frequencies[5]! / 0.0040606).toBeCloseTo(1, 4);
  });

  it('of Llama 4 may have a number for true', () => {
    const { config } = caseOf('llama4_text');
    expect(designOf({ ...config, attn_temperature_tuning: 4, for_llm_compressor: false })).toEqual(
      designOf(config),
    );
  });

  it('of Gemma 4 may have the sizes of layers with full attention by layer', () => {
    const { global_head_dim: size, ...config } = caseOf('gemma4_text').config;
    const layers = Object.fromEntries([1, 4, 6].map((layer) => [layer, { head_dim: size }]));
    expect(designOf({ ...config, per_layer_config: layers })).toEqual(designOf(caseOf('gemma4_text').config));
    const { 4: _, ...fewer } = layers;
    expect(() => designOf({ ...config, per_layer_config: fewer })).toThrow(/per_layer_config\.4 is missing/);
  });

  it('of Gemma 3n have a threshold of gates for each share that must not pass', () => {
    const { config } = caseOf('gemma3n_text');
    const thresholds = designOf(config).layers.map(({ feedForward }) =>
      feedForward?.kind === 'mlp' ? feedForward.gateThreshold : null,
    );
    // By the tables of the normal distribution.
    const expected = [1.64485, 0.25335, -0.5244, undefined, undefined, 1.64485, undefined];
    expect(thresholds.map((one) => (one ? Number(one.toFixed(5)) : one))).toEqual(expected);
  });

  it.each([
    [{ activation_sparsity_pattern: 0.95 }, /activation_sparsity_pattern is 0.95; supported is a list/],
    [{ activation_sparsity_pattern: [0.95] }, /activation_sparsity_pattern is .* a list of 7 shares/],
    [{ activation_sparsity_pattern: [1, 0, 0, 0, 0, 0, 0] }, /a list of 7 shares: 0, or 0.001 to 0.999/],
    [{ intermediate_size: [416, 75] }, /intermediate_size is .* a positive integer, or a list of 7/],
    [{ altup_active_idx: 3 }, /altup_active_idx is 3; supported is 0 to 2/],
    [{ altup_num_inputs: 1 }, /altup_num_inputs is 1; supported is at least 2/],
  ])('of Gemma 3n are refused by name: %j', (fields, message) => {
    expect(() => designOf({ ...caseOf('gemma3n_text').config, ...fields })).toThrow(message);
  });

  it('of Falcon may have null for false', () => {
    const { config } = caseOf('falcon-alibi');
    expect(designOf({ ...config, parallel_attn: null })).toEqual(
      designOf({ ...config, parallel_attn: false }),
    );
  });

  it('of Yarn-Llama may say that it was fine-tuned with its scaling', () => {
    const { config } = caseOf('llama-yarn');
    const scaling = { ...(config.rope_scaling as Fields), finetuned: true };
    expect(designOf({ ...config, rope_scaling: scaling })).toEqual(designOf(config));
  });

  it.each([undefined, null])(
    'of Apertus without rope_scaling (%s) mean the scaling of transformers',
    (absent) => {
      const { rope_scaling: _, ...config } = caseOf('apertus').config;
      const { layers } = describeFamily({ ...config, rope_scaling: absent }, new Set()).design;
      const { frequencies } = attentionsOf({ layers })[0]!.rotary!;
      const inferred = [
        0.6008631587028503, 0.0014960275730118155, 1.3027784007135779e-5, 1.7336171609372286e-8,
      ];
      for (const [index, pair] of [1, 12, 18, 31].entries())
        expect(frequencies[pair]! / inferred[index]!).toBeCloseTo(1, 6);
    },
  );
});
