import { words } from '@continuo/shared/field-names.ts';
import type { ConfigFields } from './config-fields.ts';
import type { StateSpaceDesign } from './decoder-design.ts';
import type { DecoderRow, Differences, ExpertsStyle, RowContext, Sizes } from './decoder-row.ts';
import { kernelLength } from './design-parts.ts';
import { attentionBias, graniteFactors, mlpBias } from './llama-rows.ts';
import { describeStateSpace, readMambaFields, type StateSpaceSizes } from './state-space.ts';

/** Families with state spaces (Mamba 2) in place of attention in most layers, or beside it. */

const ATTENDS: Readonly<Record<string, boolean>> = {
  attention: true,
  full_attention: true,
  mamba: false,
  linear_attention: false,
};

/** For each layer of layer_types, whether it attends. */
function attendingLayers(fields: ConfigFields, { layers }: Sizes): boolean[] {
  const types = fields.has('layer_types') ? fields.texts('layer_types') : [];
  const attends = types.flatMap((type) => ATTENDS[type] ?? []);
  if (attends.length === layers && attends.includes(true)) return attends;
  throw fields.fault('layer_types', `${layers} of ${Object.keys(ATTENDS).join(', ')}, one of attention`);
}

/** A state space in the layers that do not attend. */
function mambaLayers({ fields, sizes }: RowContext, attends: readonly boolean[]): Pick<Differences, 'layer'> {
  if (!attends.includes(false)) {
    fields.ignore(...MAMBA_FIELDS);
    return {};
  }
  const stateSpace = readMambaFields(fields, sizes.hidden, fields.number('rms_norm_eps'));
  return {
    layer: (index) =>
      attends[index] ? {} : { mixer: describeStateSpace(`model.layers.${index}.mamba`, stateSpace) },
  };
}

const MAMBA_FIELDS = words(`
  mamba_n_heads mamba_d_head mamba_n_groups mamba_d_state mamba_d_conv mamba_expand mamba_conv_bias
  mamba_proj_bias time_step_limit
`);

const ROTARY_FIELDS = ['rope_theta', 'rope_scaling', 'rope_parameters'];

/** Positions are rotated only if position_embedding_type is rope. */
function graniteRotary(fields: ConfigFields): Pick<Differences, 'rotary'> {
  const kinds = { rope: true, nope: false };
  if (fields.has('position_embedding_type') && fields.choice('position_embedding_type', kinds)) {
    return { rotary: {} };
  }
  fields.ignore(...ROTARY_FIELDS);
  return { rotary: null };
}

/** Beside the MLP of every layer. */
const GRANITE_EXPERTS: ExpertsStyle = {
  width: 'intermediate_size',
  normalized: true,
  router: 'block_sparse_moe.router.layer',
  matrices: {
    stacks: { gateUp: 'block_sparse_moe.input_linear.weight', down: 'block_sparse_moe.output_linear.weight' },
    clipped: null,
  },
  shared: 'mlp',
};

function granite(row: RowContext): Differences {
  const { fields, sizes } = row;
  const isSparse = fields.number('num_local_experts') > 0;
  if (!isSparse) fields.ignore('num_local_experts', 'num_experts_per_tok', 'intermediate_size');
  return {
    biases: attentionBias(fields),
    names: { gateUp: 'shared_mlp.input_linear', down: 'shared_mlp.output_linear' },
    mlp: 'fused',
    experts: isSparse ? GRANITE_EXPERTS : null,
    ...graniteRotary(fields),
    ...graniteFactors(row),
    ...mambaLayers(row, attendingLayers(fields, sizes)),
  };
}

const FEED_FORWARD_NAMES = {
  finalNorm: 'model.final_layernorm',
  feedForwardNorm: 'pre_ff_layernorm',
  gate: 'feed_forward.gate_proj',
  up: 'feed_forward.up_proj',
  down: 'feed_forward.down_proj',
};

function bamba(row: RowContext): Differences {
  const { fields, sizes } = row;
  const indices = fields.has('attn_layer_indices') ? fields.numbers('attn_layer_indices') : [];
  const attends = Array.from({ length: sizes.layers }, (_, layer) => indices.includes(layer));
  if (!attends.includes(true)) throw fields.fault('attn_layer_indices', 'a layer of attention');
  return {
    biases: { ...attentionBias(fields), ...mlpBias(fields) },
    names: FEED_FORWARD_NAMES,
    // Beside rope_parameters, the field changes nothing.
    rotary: { partial: 0.5, partialField: null },
    ...mambaLayers(row, attends),
  };
}

/** Two or five multipliers; absent = 1. */
function readMultipliers(fields: ConfigFields, name: string, count: number): readonly number[] {
  const values = fields.has(name) ? fields.numbers(name) : Array<number>(count).fill(1);
  if (values.length !== count) throw fields.fault(name, `${count} numbers`);
  return values;
}

/** Attention and a state space in every layer. */
function falconLayers({ fields, sizes }: RowContext): Pick<Differences, 'layer'> {
  const width = fields.has('mamba_d_ssm') ? fields.count('mamba_d_ssm') : null;
  const read = readMambaFields(fields, sizes.hidden, fields.number('rms_norm_eps'), width);
  const stateSpace = { ...read, outputBias: fields.flag('projectors_bias', false) };
  const [gate, value, key, query, step] = readMultipliers(fields, 'ssm_multipliers', 5);
  const multipliers = {
    input: fields.number('ssm_in_multiplier', 1),
    gate: gate!,
    value: value!,
    key: key!,
    query: query!,
    step: step!,
    output: fields.number('ssm_out_multiplier', 1),
  };
  const isNormed = fields.flag('mamba_rms_norm', false);
  const isBefore = fields.flag('mamba_norm_before_gate', true) && isNormed;
  const normPlace: StateSpaceDesign['normPlace'] = isBefore ? 'before-gate' : 'after-gate';
  const factors = {
    inputFactor: fields.number('attention_in_multiplier', 1),
    outputFactor: fields.number('attention_out_multiplier', 1),
  };
  return {
    layer: (index) => {
      const described = describeStateSpace(`model.layers.${index}.mamba`, stateSpace);
      const norm = isNormed ? described.norm : null;
      return { parallel: { ...factors, stateSpace: { ...described, norm, normPlace, multipliers } } };
    },
  };
}

function falconH1(row: RowContext): Differences {
  const { fields, sizes } = row;
  const [gate, output] = readMultipliers(fields, 'mlp_multipliers', 2);
  return {
    biases: { ...attentionBias(fields), ...mlpBias(fields) },
    names: FEED_FORWARD_NAMES,
    mlpMultipliers: { gate: gate!, output: output! },
    attention: { scale: fields.number('key_multiplier', 1) / Math.sqrt(sizes.headSize) },
    decoder: {
      embeddingScale: fields.number('embedding_multiplier', 1),
      logitScale: fields.number('lm_head_multiplier', 1),
    },
    ...falconLayers(row),
  };
}

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

/** Mamba's sizes have other names than in the families before. */
function nemotronSizes(fields: ConfigFields): StateSpaceSizes {
  const heads = fields.count('mamba_num_heads', 128);
  const keyHeads = fields.count('n_groups', 8);
  if (heads % keyHeads !== 0) throw fields.fault('n_groups', `a divisor of the ${heads} heads`);
  const bias = fields.flag('use_bias', false);
  return {
    heads,
    valueSize: fields.count('mamba_head_dim', 64),
    keyHeads,
    keySize: fields.count('ssm_state_size', 128),
    length: kernelLength(fields, 'conv_kernel'),
    kernelBias: fields.flag('use_conv_bias', true),
    inputBias: bias,
    outputBias: bias,
    // transformers has no upper limit, and reads no other field for the lower one.
    stepLimits: [fields.number('time_step_min', 0.001), Infinity],
    epsilon: fields.number('layer_norm_epsilon'),
  };
}

/** Experts without gates, beside one that every token uses. */
function nemotronExperts(fields: ConfigFields): ExpertsStyle {
  fields.require('mlp_bias', false);
  fields.require('n_shared_experts', 1);
  const groups = fields.count('n_group', 1);
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
  const stateSpace = blocks.includes('state-space') ? nemotronSizes(fields) : null;
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

export const STATE_SPACE_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['granitemoehybrid'],
    defaults: { rms_norm_eps: 1e-6, num_local_experts: 8, num_experts_per_tok: 2 },
    sizeFields: { width: ['shared_intermediate_size'] },
    ignored: words('output_router_logits router_aux_loss_coef init_method mamba_chunk_size'),
    requires: { hidden_act: ['silu'] },
    differences: granite,
  },
  {
    modelTypes: ['bamba'],
    defaults: { rms_norm_eps: 1e-5, num_key_value_heads: 8 },
    ignored: words('num_logits_to_keep z_loss_coefficient mamba_chunk_size'),
    requires: { hidden_act: ['silu'] },
    differences: bamba,
  },
  {
    modelTypes: ['falcon_h1'],
    defaults: { rms_norm_eps: 1e-5, num_key_value_heads: 8, mamba_d_ssm: 1024 },
    ignored: words('num_logits_to_keep mamba_chunk_size mlp_expansion_factor'),
    requires: { hidden_act: ['silu'], mamba_use_mlp: [true], attn_layer_indices: [] },
    differences: falconH1,
  },
  {
    modelTypes: ['nemotron_h'],
    defaults: {
      layer_norm_epsilon: 1e-5,
      num_key_value_heads: 8,
      head_dim: 128,
      mlp_hidden_act: 'relu2',
      max_position_embeddings: 4096,
      n_routed_experts: 8,
      num_experts_per_tok: 2,
    },
    prefixes: ['model.', 'backbone.'],
    // Layers that predict further tokens are not served.
    ignored: words(`
      num_logits_to_keep use_mamba_kernels mamba_proj_bias mamba_ssm_cache_dtype chunk_size expand hidden_dropout
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
