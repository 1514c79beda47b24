import { words } from '@continuo/shared/field-names.ts';
import type { DecoderRow } from '../reading/decoder-row.ts';
import {
  GRANITE_EXPERTS,
  gatedShared,
  MIXTRAL_EXPERTS,
  ROUTER_TRAINING,
  separate,
  withDenseLayers,
} from '../reading/expert-styles.ts';
import type { RotaryOptions } from '../reading/rotary.ts';
import { attentionBias, graniteFactors } from '../reading/shared-differences.ts';
import { everyNthFull, everywhere, laterLayers } from '../reading/windows.ts';

/** Families with experts. */

const MELLUM_ROTARY: Partial<RotaryOptions> = {
  partial: 1,
  thetaField: null,
  partialField: null,
  reads: 'rope_parameters',
};

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
      experts: { ...separate(row.fields, 'moe_intermediate_size'), shared: gatedShared(row.fields) },
      ...withDenseLayers(row, laterLayers(row).layer),
    }),
  },
  {
    modelTypes: ['qwen3_moe'],
    defaults: { rms_norm_eps: 1e-6 },
    ignored: [...ROUTER_TRAINING, 'max_window_layers'],
    requires: { shared_expert_intermediate_size: [0] },
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
      experts: GRANITE_EXPERTS,
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
