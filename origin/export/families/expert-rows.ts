import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from './config-fields.ts';
import type { DecoderRow, Differences, ExpertsStyle, RowContext } from './decoder-row.ts';
import { attentionBias, graniteFactors } from './llama-rows.ts';
import type { RotaryOptions } from './rotary.ts';
import { everyNthFull, everywhere, laterLayers } from './windows.ts';

/** Families with experts. */

export const ROUTER_TRAINING = ['output_router_logits', 'router_aux_loss_coef', 'router_jitter_noise'];

/** Qwen's and OLMoE's: one matrix for each expert. */
export const separate = (
  fields: ConfigFields,
  width: string,
  normalized = fields.flag('norm_topk_prob', false),
): ExpertsStyle => ({
  width,
  normalized,
  router: 'mlp.gate',
  matrices: {
    of: (expert) => ({
      gate: `mlp.experts.${expert}.gate_proj`,
      up: `mlp.experts.${expert}.up_proj`,
      down: `mlp.experts.${expert}.down_proj`,
    }),
  },
});

export const MIXTRAL_EXPERTS: ExpertsStyle = {
  width: 'intermediate_size',
  normalized: true,
  router: 'block_sparse_moe.gate',
  matrices: {
    of: (expert) => ({
      gate: `block_sparse_moe.experts.${expert}.w1`,
      up: `block_sparse_moe.experts.${expert}.w3`,
      down: `block_sparse_moe.experts.${expert}.w2`,
    }),
  },
};

/** What published files say about training and about layers that predict further tokens. */
export const DEEPSEEK_TRAINING = words(`
  output_router_logits ep_size seq_aux aux_loss_alpha num_nextn_predict_layers num_mtp_layers
`);

/** Layers before first_k_dense_replace have one MLP. */
export function denseFirst({ fields }: RowContext): Pick<Differences, 'layer'> {
  const first = fields.number('first_k_dense_replace');
  return { layer: (index) => ({ sparse: index >= first }) };
}

export const groupsOf = (fields: ConfigFields, best: number) => ({
  count: fields.count('n_group'),
  chosen: fields.count('topk_group'),
  best,
});

/** Experts as DeepSeek names them, with others that every token uses. */
export function deepseekExperts(
  fields: ConfigFields,
  routing: NonNullable<ExpertsStyle['routing']>,
  normalized: boolean,
): ExpertsStyle {
  return {
    ...separate(fields, 'moe_intermediate_size', normalized),
    counts: { experts: 'n_routed_experts', active: fields.count('num_experts_per_tok') },
    routing: { ...routing, smallestSum: 1e-20, scale: fields.number('routed_scaling_factor') },
    shared: {
      name: 'mlp.shared_experts',
      width: fields.count('moe_intermediate_size') * fields.count('n_shared_experts'),
    },
  };
}

/** Sigmoid scores with a correction, by groups: the routing of DeepSeek V3 and its relatives. */
export const correctedExperts = (fields: ConfigFields): ExpertsStyle => ({
  ...deepseekExperts(
    fields,
    {
      scores: 'sigmoid',
      groups: groupsOf(fields, 2),
    },
    fields.flag('norm_topk_prob'),
  ),
  correction: 'mlp.gate.e_score_correction_bias',
});

const MELLUM_ROTARY: Partial<RotaryOptions> = {
  partial: 1,
  thetaField: null,
  partialField: null,
  reads: 'rope_parameters',
};

/** Layers with one MLP: of mlp_only_layers or mlp_layer_types, and all but every decoder_sparse_step-th. */
export function withDenseLayers(
  { fields }: RowContext,
  layer: Differences['layer'],
): Pick<Differences, 'layer'> {
  const dense = fields.has('mlp_only_layers') ? fields.numbers('mlp_only_layers') : [];
  const types = fields.has('mlp_layer_types') ? fields.texts('mlp_layer_types') : [];
  const step = fields.count('decoder_sparse_step', 1);
  return {
    layer: (index) => ({
      ...layer?.(index),
      sparse: !dense.includes(index) && types[index] !== 'dense' && (index + 1) % step === 0,
    }),
  };
}

const GPT_OSS_SCALING = {
  rope_type: 'yarn',
  factor: 32,
  truncate: false,
  original_max_position_embeddings: 4096,
};

export const EXPERT_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['mixtral'],
    defaults: { rms_norm_eps: 1e-5 },
    ignored: ROUTER_TRAINING,
    differences: ({ fields }) => ({
      rotary: { theta: 1_000_000 },
      experts: MIXTRAL_EXPERTS,
      ...everywhere(fields),
    }),
  },
  {
    modelTypes: ['qwen2_moe'],
    defaults: { rms_norm_eps: 1e-6 },
    ignored: ROUTER_TRAINING,
    differences: (row) => ({
      biases: { qkv: row.fields.flag('qkv_bias', true) },
      experts: {
        ...separate(row.fields, 'moe_intermediate_size'),
        shared: {
          name: 'mlp.shared_expert',
          width: row.fields.count('shared_expert_intermediate_size'),
          gate: 'mlp.shared_expert_gate',
        },
      },
      ...withDenseLayers(row, laterLayers(row).layer),
    }),
  },
  {
    modelTypes: ['qwen3_moe'],
    defaults: { rms_norm_eps: 1e-6 },
    ignored: [...ROUTER_TRAINING, 'max_window_layers'],
    differences: (row) => {
      const used = row.fields.flag('use_sliding_window', false);
      const window = used ? row.fields.optionalCount('sliding_window') : null;
      row.fields.ignore('sliding_window');
      return {
        biases: attentionBias(row.fields),
        headNorm: { over: 'head' },
        experts: separate(row.fields, 'moe_intermediate_size'),
        ...withDenseLayers(row, () => ({ window })),
      };
    },
  },
  {
    modelTypes: ['mellum'],
    defaults: { rms_norm_eps: 1e-6, head_dim: 128, sliding_window: 1024, norm_topk_prob: true },
    // Layers that predict further tokens are not served.
    ignored: words(`
      output_router_logits router_aux_loss_coef max_window_layers num_mtp_layers num_nextn_predict_layers
      mtp_layer_types mtp_mlp_layer_types
    `),
    requires: { use_sliding_window: [true] },
    differences: (row) => ({
      biases: attentionBias(row.fields),
      headNorm: { over: 'head' },
      rotary: { ...MELLUM_ROTARY, theta: 500_000, layerType: 'full_attention' },
      slidingRotary: { ...MELLUM_ROTARY, layerType: 'sliding_attention' },
      experts: separate(row.fields, 'moe_intermediate_size'),
      ...withDenseLayers(row, everyNthFull(row, 1).layer),
    }),
  },
  {
    modelTypes: ['olmoe'],
    defaults: { rms_norm_eps: 1e-5 },
    ignored: ROUTER_TRAINING,
    differences: ({ fields }) => ({
      biases: attentionBias(fields),
      headNorm: { over: 'width' },
      attention: { clip: fields.optionalNumber('clip_qkv') },
      experts: separate(fields, 'intermediate_size'),
    }),
  },
  {
    modelTypes: ['granitemoe'],
    defaults: { rms_norm_eps: 1e-6 },
    ignored: ROUTER_TRAINING,
    differences: (row) => ({
      biases: attentionBias(row.fields),
      ...graniteFactors(row),
      experts: {
        width: 'intermediate_size',
        normalized: true,
        router: 'block_sparse_moe.router.layer',
        matrices: {
          stacks: {
            gateUp: 'block_sparse_moe.input_linear.weight',
            down: 'block_sparse_moe.output_linear.weight',
          },
          clipped: null,
        },
      },
    }),
  },
  {
    modelTypes: ['gpt_oss'],
    defaults: { rms_norm_eps: 1e-5, head_dim: 64, sliding_window: 128 },
    ignored: [...ROUTER_TRAINING, 'experts_per_token', 'initial_context_length'],
    differences: (row) => ({
      biases: attentionBias(row.fields, 'attention_bias', true),
      names: { sinks: 'self_attn.sinks' },
      activation: () => 'silu',
      rotary: { theta: 150_000, otherwise: GPT_OSS_SCALING },
      experts: {
        width: 'intermediate_size',
        normalized: true,
        router: 'mlp.router',
        routerBias: true,
        matrices: {
          stacks: { gateUp: 'mlp.experts.gate_up_proj', down: 'mlp.experts.down_proj' },
          clipped: {
            alpha: row.fields.number('swiglu_alpha', 1.702),
            limit: row.fields.number('swiglu_limit', 7),
          },
        },
      },
      ...everyNthFull(row, 2),
    }),
  },
];
