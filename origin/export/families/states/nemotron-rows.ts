import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, ExpertsStyle, RowContext } from '../reading/decoder-row.ts';
import { mlpBias } from '../reading/shared-differences.ts';
import { describeStateSpace, readStateSpace, type StateSpaceFields } from './state-space.ts';

/** Nemotron H and Mamba 2: layers of one block each. */

const BLOCKS = {
  linear_attention: 'state-space',
  mamba: 'state-space',
  full_attention: 'attention',
  attention: 'attention',
  mlp: 'mlp',
  moe: 'experts',
} as const;

type Block = (typeof BLOCKS)[keyof typeof BLOCKS];

const BLOCK_LETTERS: Readonly<Record<string, keyof typeof BLOCKS>> = {
  M: 'mamba',
  '*': 'attention',
  '-': 'mlp',
  E: 'moe',
};

const [BLOCK_LIST, BLOCK_PATTERN] = ['layers_block_type', 'hybrid_override_pattern'];

/** The layers of Nemotron H, each of one block: a list of names, or a text of letters. */
function readBlocks(fields: ConfigFields): readonly Block[] {
  const letters = fields.has(BLOCK_PATTERN) ? [...fields.text(BLOCK_PATTERN)] : [];
  const spelled = letters.map((letter) => BLOCK_LETTERS[letter] ?? letter);
  const field = fields.has(BLOCK_LIST) ? BLOCK_LIST : BLOCK_PATTERN;
  const names = field === BLOCK_LIST ? fields.texts(BLOCK_LIST) : spelled;
  const blocks = names.flatMap((name) =>
    Object.hasOwn(BLOCKS, name) ? BLOCKS[name as keyof typeof BLOCKS] : [],
  );
  if (blocks.length !== names.length) throw fields.fault(field, Object.keys(BLOCKS).join(', '));
  if (!blocks.includes('attention')) throw fields.fault(field, 'with a layer of attention');
  if (!blocks.includes('mlp') && !blocks.includes('experts')) throw fields.fault(field, 'with an MLP');
  const isSame =
    spelled.length === 0 || spelled.every((name, index) => BLOCKS[name as never] === blocks[index]);
  if (!isSame || (spelled.length > 0 && spelled.length !== blocks.length))
    throw fields.fault(BLOCK_PATTERN, `the blocks of ${BLOCK_LIST}`);
  return blocks;
}

const NEMOTRON: StateSpaceFields = {
  heads: ['mamba_num_heads', 128],
  valueSize: 'mamba_head_dim',
  keyHeads: ['n_groups', 8],
  keySize: ['ssm_state_size', 128],
  length: 'conv_kernel',
  kernelBias: 'use_conv_bias',
  bias: 'use_bias',
  stepLimits: 'time_step_min',
};

const MAMBA2: StateSpaceFields = {
  ...NEMOTRON,
  heads: ['num_heads', 128],
  valueSize: 'head_dim',
  keySize: ['state_size', 128],
  stepLimits: 'time_step_limit',
};

/** Experts without gates, beside one that every token uses. */
function nemotronExperts(fields: ConfigFields): ExpertsStyle {
  fields.require('mlp_bias', false);
  fields.require('n_shared_experts', 1);
  const groups = fields.count('n_group', 1);
  if (groups === 1) fields.require('topk_group', 1);
  return {
    width: 'moe_intermediate_size',
    counts: { experts: 'n_routed_experts', active: fields.count('num_experts_per_tok') },
    normalized: fields.flag('norm_topk_prob', true),
    router: 'mixer.gate',
    routing: {
      scores: 'sigmoid',
      groups: groups === 1 ? null : { count: groups, chosen: fields.count('topk_group', 1), best: 2 },
      epsilon: 1e-20,
      scale: fields.number('routed_scaling_factor', 1),
    },
    correction: 'mixer.gate.e_score_correction_bias',
    matrices: {
      of: (expert) => ({
        up: `mixer.experts.${expert}.up_proj`,
        down: `mixer.experts.${expert}.down_proj`,
      }),
    },
    shared: { name: 'mixer.shared_experts', width: fields.count('moe_shared_expert_intermediate_size') },
  };
}

const NEMOTRON_EXPERTS = words(`
  n_routed_experts num_experts_per_tok n_shared_experts moe_intermediate_size moe_shared_expert_intermediate_size
  norm_topk_prob n_group topk_group routed_scaling_factor moe_latent_size
`);

function nemotronH({ fields }: RowContext): Differences {
  const blocks = readBlocks(fields);
  fields.require('num_hidden_layers', blocks.length);
  const isSparse = blocks.includes('experts');
  const epsilon = fields.number('layer_norm_epsilon');
  const stateSpace = blocks.includes('state-space')
    ? readStateSpace(fields, NEMOTRON, { width: null, epsilon })
    : null;
  const experts = isSparse ? nemotronExperts(fields) : null;
  if (!isSparse) fields.ignore(...NEMOTRON_EXPERTS);
  return {
    biases: mlpBias(fields),
    names: {
      embedding: 'model.embeddings',
      finalNorm: 'model.norm_f',
      query: 'mixer.q_proj',
      key: 'mixer.k_proj',
      value: 'mixer.v_proj',
      output: 'mixer.o_proj',
      up: 'mixer.up_proj',
      down: 'mixer.down_proj',
      attentionNorm: 'norm',
      feedForwardNorm: 'norm',
    },
    norm: { kind: 'rms', epsilon: 'layer_norm_epsilon' },
    mlp: 'plain',
    activation: 'mlp_hidden_act',
    rotary: null,
    experts,
    layer: (index) => {
      const block = blocks[index]!;
      if (block === 'attention') return { only: 'mixer' };
      if (block !== 'state-space') return { only: 'feed-forward', sparse: block === 'experts' };
      return { only: 'mixer', mixer: describeStateSpace(`model.layers.${index}.mixer`, stateSpace!) };
    },
  };
}

/** Mamba 2: state spaces only. */
function mamba2({ fields, sizes }: RowContext): Differences {
  const width = fields.count('expand', 2) * sizes.hidden;
  const epsilon = fields.number('layer_norm_epsilon');
  const stateSpace = readStateSpace(fields, MAMBA2, { width, epsilon });
  return {
    names: { embedding: 'model.embeddings', finalNorm: 'model.norm_f', attentionNorm: 'norm' },
    norm: { kind: 'rms', epsilon: 'layer_norm_epsilon' },
    rotary: null,
    layer: (index) => ({
      only: 'mixer',
      mixer: describeStateSpace(`model.layers.${index}.mixer`, stateSpace),
    }),
  };
}

/** How weights were drawn before the training, and how other software computes a state space. */
const MAMBA2_IGNORED = words(`
  chunk_size residual_in_fp32 rescale_prenorm_residual time_step_rank time_step_min time_step_max time_step_floor
`);

export const NEMOTRON_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['mamba2'],
    defaults: {
      layer_norm_epsilon: 1e-5,
      head_dim: 64,
      n_groups: 8,
      vocab_size: 32_768,
      hidden_size: 4096,
      num_hidden_layers: 64,
    },
    prefixes: ['model.', 'backbone.'],
    aliases: { 'embeddings.': 'embedding.' },
    // The field is Mamba's, whose heads have no KV.
    sizeFields: { heads: ['num_heads'], kvHeads: ['num_heads'], headSize: ['head_dim'] },
    unlimited: true,
    ignored: MAMBA2_IGNORED,
    requires: { hidden_act: ['silu', 'swish'] },
    differences: mamba2,
  },
  {
    modelTypes: ['nemotron_h'],
    defaults: {
      layer_norm_epsilon: 1e-5,
      mamba_head_dim: 64,
      num_key_value_heads: 8,
      head_dim: 128,
      mlp_hidden_act: 'relu2',
      max_position_embeddings: 4096,
      n_routed_experts: 8,
      num_experts_per_tok: 2,
    },
    prefixes: ['model.', 'backbone.'],
    // Layers that predict further tokens are not served, and attention has no positions.
    ignored: words(`
      rope_theta partial_rotary_factor num_logits_to_keep use_mamba_kernels mamba_proj_bias mamba_ssm_cache_dtype chunk_size expand hidden_dropout
      rescale_prenorm_residual residual_in_fp32 time_step_limit time_step_max time_step_floor time_step_rank
      output_router_logits moe_shared_expert_overlap num_nextn_predict_layers mtp_layers_block_type
      mtp_hybrid_override_pattern
    `),
    requires: {
      mamba_hidden_act: ['silu'],
      moe_latent_size: [],
      sliding_window: [],
      tie_word_embeddings: [false],
    },
    layers: (fields) => readBlocks(fields).length,
    differences: nemotronH,
  },
];
