import { words } from '@continuo/shared/field-names.ts';
import type { MlpDesign } from '../../design/feed-forward-design.ts';
import type { AttentionDesign, BlockBeforeDesign } from '../../design/mixer-design.ts';
import type { ProjectionDesign } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, LayerDifferences, RowContext } from '../reading/decoder-row.ts';
import { chosenRows, projection, readActivation, rmsNorm } from '../reading/design-parts.ts';
import { readRotary } from '../reading/rotary.ts';
import { describeStateSpace, readStateSpace, type StateSpaceFields } from './state-space.ts';

/** Zamba 2: state spaces, some after a block of attention and MLP that layers share, with their adapters. */

const [BLOCKS, HYBRID] = ['layers_block_type', 'hybrid'];
const PLAIN: readonly string[] = ['mamba', 'linear_attention'];

/** The layers with a block before the state space. */
function hybridLayers(fields: ConfigFields): readonly number[] {
  const types = fields.has(BLOCKS!) ? fields.texts(BLOCKS!) : [];
  fields.require('num_hidden_layers', types.length);
  const hybrid = types.flatMap((type, layer) => (type === HYBRID ? layer : []));
  const isKnown = types.every((type) => type === HYBRID || PLAIN.includes(type));
  if (!isKnown || hybrid.length === 0) throw fields.fault(BLOCKS!, `${PLAIN.join(', ')} and ${HYBRID}`);
  fields.require('hybrid_layer_ids', hybrid);
  return hybrid;
}

const STATE_SPACE: StateSpaceFields = {
  heads: ['n_mamba_heads', 8],
  valueSize: 'mamba_headdim',
  keyHeads: ['mamba_ngroups', 1],
  keySize: ['mamba_d_state', 64],
  length: 'mamba_d_conv',
  kernelBias: null,
  bias: 'add_bias_linear',
  stepLimits: 'time_step_min',
};

/** What all uses of shared blocks have in common. */
interface BlockSizes {
  readonly attention: Omit<AttentionDesign, 'query' | 'key' | 'value' | 'output'>;
  readonly mlp: Pick<MlpDesign, 'width' | 'activation'>;
  readonly rank: number;
  readonly hasAttentionAdapters: boolean;
  readonly bias: boolean;
  readonly epsilon: number;
}

/** @param use counts the layers with a block. Its own adapters are at that place of the lists. */
function describeBlock(block: string, use: number, sizes: BlockSizes): Omit<BlockBeforeDesign, LayerParts> {
  const { attention, mlp, rank, hasAttentionAdapters, bias, epsilon } = sizes;
  const adapted = (made: ProjectionDesign, list: string): ProjectionDesign => {
    const [down, up] = [0, 1].map((part) => projection(`${block}.${list}.${use}.${part}`, false));
    return { ...made, added: { rank, down: down!, up: up! } };
  };
  const input = (which: string): ProjectionDesign => {
    const made = projection(`${block}.self_attn.${which}_proj`, false);
    return hasAttentionAdapters ? adapted(made, `self_attn.linear_${which}_adapter_list`) : made;
  };
  const half = (first: number): ProjectionDesign => {
    const rows = [{ first, count: mlp.width }];
    const made = adapted(
      projection(`${block}.feed_forward.gate_up_proj`, bias),
      'feed_forward.gate_up_proj_adapter_list',
    );
    const { rank: _, down, up } = made.added!;
    return { ...chosenRows(made, rows), added: { rank, down, up: chosenRows(up, rows) } };
  };
  return {
    kind: 'block-before',
    norm: rmsNorm(`${block}.input_layernorm`, epsilon),
    attention: {
      ...attention,
      query: input('q'),
      key: input('k'),
      value: input('v'),
      output: projection(`${block}.self_attn.o_proj`, false),
    },
    mlpNorm: rmsNorm(`${block}.pre_ff_layernorm`, epsilon),
    mlp: {
      kind: 'mlp',
      ...mlp,
      gate: half(0),
      up: half(mlp.width),
      down: projection(`${block}.feed_forward.down_proj`, bias),
    },
  };
}

type LayerParts = 'linear' | 'stateSpaceNorm' | 'stateSpace';

/** Heads together are twice as wide as the residual stream, which attention reads beside the embedding. */
function readBlocks({ fields, sizes }: RowContext): BlockSizes & { readonly maxPositions: number } {
  const { hidden, heads, kvHeads, width, positions } = sizes;
  const headSize = Math.floor((2 * hidden) / heads);
  fields.require('attention_hidden_size', 2 * hidden);
  fields.require('attention_head_dim', headSize);
  // Nothing reads it: half of a head, or what other families mean.
  fields.require('kv_channels', Math.floor(hidden / heads), headSize);
  fields.require('num_query_groups', heads);
  const hasAttentionAdapters = fields.flag('use_shared_attention_adapter', false);
  if (hasAttentionAdapters && (kvHeads !== heads || headSize * heads !== 2 * hidden))
    throw fields.fault('num_key_value_heads', `${heads} with use_shared_attention_adapter`);
  const isRotated = fields.flag('use_mem_rope', false);
  if (!isRotated) fields.ignore('rope_theta', 'rope_scaling', 'rope_parameters');
  const rotary = isRotated ? readRotary(fields, { headSize, positions }) : null;
  return {
    attention: {
      kind: 'attention',
      sharedWith: null,
      heads,
      kvHeads,
      headSize,
      inputWidth: 2 * hidden,
      latent: null,
      gate: null,
      clip: null,
      queryNorm: null,
      keyNorm: null,
      valueNorm: null,
      normPlace: 'before-rotary',
      scale: 1 / Math.sqrt(headSize / 2),
      queryScaling: null,
      window: null,
      softCap: null,
      sinks: null,
      rotary: rotary?.rotary ?? null,
      slopes: null,
    },
    mlp: { width, activation: readActivation(fields, 'hidden_act', 'gelu') },
    rank: fields.count('adapter_rank', 128),
    hasAttentionAdapters,
    bias: fields.flag('add_bias_linear', false),
    epsilon: fields.number('rms_norm_eps'),
    maxPositions: rotary?.maxPositions ?? positions,
  };
}

function zamba2(row: RowContext): Differences {
  const { fields, sizes } = row;
  const hybrid = hybridLayers(fields);
  const width = fields.count('mamba_expand', 2) * sizes.hidden;
  const stateSpace = readStateSpace(fields, STATE_SPACE, { width, epsilon: 1e-5 });
  const blocks = readBlocks(row);
  const count = fields.count('num_mem_blocks', 1);
  const layer = (index: number): LayerDifferences => {
    const name = `model.layers.${index}`;
    const use = hybrid.indexOf(index);
    if (use < 0) return { only: 'mixer', mixer: describeStateSpace(`${name}.mamba`, stateSpace) };
    const block = `model.layers.${hybrid[use % count]}.shared_transformer`;
    const mixer: BlockBeforeDesign = {
      ...describeBlock(block, use, blocks),
      linear: projection(`${name}.linear`, false),
      stateSpaceNorm: rmsNorm(`${name}.mamba_decoder.input_layernorm`, blocks.epsilon),
      stateSpace: describeStateSpace(`${name}.mamba_decoder.mamba`, stateSpace),
    };
    return { only: 'mixer', mixer, names: { attentionNorm: '' } };
  };
  return {
    names: { finalNorm: 'model.final_layernorm' },
    rotary: null,
    tied: true,
    maxPositions: blocks.maxPositions,
    layer,
  };
}

export const ZAMBA_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['zamba2'],
    defaults: { rms_norm_eps: 1e-5 },
    ignored: words(`
      chunk_size num_logits_to_keep use_mamba_kernels use_mem_eff_path time_step_limit time_step_max time_step_floor
    `),
    // Without tied embeddings, transformers does not tie the blocks either.
    requires: { use_conv_bias: [true], use_long_context: [false], tie_word_embeddings: [true] },
    layers: (fields) => fields.texts(BLOCKS!).length,
    differences: zamba2,
  },
];
