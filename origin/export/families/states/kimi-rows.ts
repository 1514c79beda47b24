import { words } from '@continuo/shared/field-names.ts';
import type { LinearAttentionDesign } from '../../design/mixer-design.ts';
import { whole } from '../../design/weight-design.ts';
import type { ConfigFields } from '../reading/config-fields.ts';
import type { DecoderRow, Differences, LayerDifferences, RowContext } from '../reading/decoder-row.ts';
import { projection, readAttendingLayers, rmsNorm } from '../reading/design-parts.ts';
import { MIXTRAL_EXPERTS } from '../reading/expert-styles.ts';
import { latent } from '../reading/latent.ts';
import type { Sizes } from '../reading/sizes.ts';

/** Kimi Linear: delta networks with a decay for each value of a key, and latent attention. */

/** A field that transformers 5 names otherwise. */
function either<T>(fields: ConfigFields, name: string, newName: string, read: (name: string) => T): T {
  const value = read(fields.has(name) ? name : newName);
  fields.require(newName, value);
  return value;
}

/** Without layer_types, whether a layer attends: published files count layers from 1, in two lists. */
function listedLayers(fields: ConfigFields, { layers }: Sizes): (layer: number) => boolean {
  const listed = fields.inner('linear_attn_config');
  if (listed?.has('full_attn_layers') !== true || !listed.has('kda_layers')) {
    listed?.ignore('full_attn_layers', 'kda_layers');
    return (layer) => layer > 0 && layer % 4 === 0;
  }
  const [full, linear] = [listed.numbers('full_attn_layers'), listed.numbers('kda_layers')];
  const attends = (layer: number) => full.includes(layer + 1);
  const isComplete =
    full.length + linear.length === layers &&
    Array.from({ length: layers }, (_, layer) => attends(layer) !== linear.includes(layer + 1)).every(
      Boolean,
    );
  if (isComplete || fields.has('layer_types')) return attends;
  throw fields.fault('linear_attn_config', `each of ${layers} layers in one list`);
}

type DeltaSizes = Pick<LinearAttentionDesign, 'heads' | 'keySize'> & { readonly length: number };

/** Those of linear_attn_config come before others. */
function deltaSizes(fields: ConfigFields): DeltaSizes {
  const listed = fields.inner('linear_attn_config');
  const size = (inner: string, outer: string, absent: number): number => {
    if (listed?.has(inner) !== true) return fields.count(outer, absent);
    fields.ignore(outer);
    return listed.count(inner);
  };
  const length = size('short_conv_kernel_size', 'linear_conv_kernel_dim', 4);
  if (length < 2) throw fields.fault('linear_attn_config', 'short_conv_kernel_size of at least 2');
  return {
    heads: size('num_heads', 'linear_num_heads', 32),
    keySize: size('head_dim', 'linear_head_dim', 128),
    length,
  };
}

function delta(name: string, { heads, keySize, length }: DeltaSizes, epsilon: number): LinearAttentionDesign {
  const of = (which: string) => projection(`${name}.${which}`, false);
  return {
    kind: 'linear-attention',
    heads,
    keyHeads: heads,
    keySize,
    valueSize: keySize,
    query: of('q_proj'),
    key: of('k_proj'),
    value: of('v_proj'),
    kernel: {
      length,
      weight: ['q', 'k', 'v'].map((part) => ({ tensor: `${name}.${part}_conv1d.weight` })),
      bias: null,
    },
    decay: of('f_b_proj'),
    decayBias: whole(`${name}.dt_bias`),
    logDecay: whole(`${name}.A_log`),
    rate: of('b_proj'),
    rateScale: 1,
    gate: of('g_b_proj'),
    narrow: { width: keySize, decay: of('f_a_proj'), gate: of('g_a_proj') },
    norm: rmsNorm(`${name}.o_norm`, epsilon),
    output: of('o_proj'),
  };
}

function experts(fields: ConfigFields): NonNullable<Differences['experts']> {
  const count = (name: string) => fields.count(name);
  const active = either(fields, 'num_experts_per_token', 'num_experts_per_tok', count);
  const shared = either(fields, 'num_shared_experts', 'n_shared_experts', count);
  const groups = either(fields, 'num_expert_group', 'n_group', count);
  const normalized = either(fields, 'moe_renormalize', 'norm_topk_prob', (name) => fields.flag(name));
  const number = fields.has('num_experts') ? 'num_experts' : 'num_local_experts';
  const width = fields.count('moe_intermediate_size');
  return {
    ...MIXTRAL_EXPERTS,
    width: 'moe_intermediate_size',
    counts: { experts: number, active },
    normalized,
    routing: {
      scores: 'sigmoid',
      groups: { count: groups, chosen: fields.count('topk_group'), best: 2 },
      epsilon: 1e-20,
      scale: fields.number('routed_scaling_factor'),
    },
    correction: 'block_sparse_moe.gate.e_score_correction_bias',
    shared: { name: 'block_sparse_moe.shared_experts', width: width * shared },
  };
}

function sparseLayers(fields: ConfigFields): (layer: number) => boolean {
  if (!fields.has('mlp_layer_types')) {
    const first = fields.number('first_k_dense_replace', 1);
    return (layer) => layer >= first;
  }
  fields.ignore('first_k_dense_replace');
  const types = fields.texts('mlp_layer_types');
  return (layer) => types[layer] === 'sparse';
}

function kimiLinear(row: RowContext): Differences {
  const { fields, sizes } = row;
  const attends = readAttendingLayers(fields, sizes.layers, 'linear_attention', listedLayers(fields, sizes));
  const shape = deltaSizes(fields);
  const epsilon = fields.number('rms_norm_eps');
  const isSparse = sparseLayers(fields);
  // The convolution has the activation of the MLP.
  fields.require('hidden_act', 'silu', 'swish');
  return {
    ...latent(row, { interleaved: false }),
    rotary: null,
    experts: experts(fields),
    layer: (index): LayerDifferences => ({
      sparse: isSparse(index),
      ...(!attends[index] && { mixer: delta(`model.layers.${index}.self_attn`, shape, epsilon) }),
    }),
  };
}

export const KIMI_ROWS: readonly DecoderRow[] = [
  {
    modelTypes: ['kimi_linear'],
    defaults: { rms_norm_eps: 1e-5, topk_group: 1, routed_scaling_factor: 2.446 },
    sizeFields: {
      headSize: ['qk_nope_head_dim'],
      positions: ['model_max_length', 'max_position_embeddings'],
    },
    // As transformers 5 saves dense layers.
    aliases: { '.mlp.': '.block_sparse_moe.' },
    // Positions are not rotated, and the head size is that of published code which nothing reads.
    ignored: words(`
      head_dim rope_theta rope_scaling rope_parameters output_router_logits num_nextn_predict_layers
    `),
    requires: {
      mla_use_nope: [true],
      moe_layer_freq: [1],
      moe_router_activation_func: ['sigmoid'],
      use_grouped_topk: [true],
    },
    differences: kimiLinear,
  },
];
