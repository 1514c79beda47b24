import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from './config-fields.ts';
import type { Differences, ExpertsStyle, RowContext } from './decoder-row.ts';

/** How files name experts and choose among them, where several families do so in the same way. */

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

export const GRANITE_EXPERTS: ExpertsStyle = {
  width: 'intermediate_size',
  normalized: true,
  router: 'block_sparse_moe.router.layer',
  matrices: {
    stacks: { gateUp: 'block_sparse_moe.input_linear.weight', down: 'block_sparse_moe.output_linear.weight' },
    clipped: null,
  },
};

/** Qwen's: an MLP with a gate, beside the experts. */
export const gatedShared = (fields: ConfigFields): NonNullable<ExpertsStyle['shared']> => ({
  name: 'mlp.shared_expert',
  width: fields.count('shared_expert_intermediate_size'),
  gate: 'mlp.shared_expert_gate',
});

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
