import type { Architecture, StoredTensors } from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { attentionBias, config, qwenSharedExperts } from './llama-architectures.ts';
import { byKeyHead, stacked } from './row-order.ts';

/** Qwen's architectures with gated delta networks in most layers. */

function shapeOf(keys: GgufKeys) {
  const heads = keys.number('ssm.time_step_rank');
  return {
    keyHeads: keys.number('ssm.group_count'),
    heads,
    keySize: keys.number('ssm.state_size'),
    valueSize: keys.number('ssm.inner_size') / heads,
  };
}

function fields(keys: GgufKeys, tensors: StoredTensors) {
  const { keyHeads, heads, keySize, valueSize } = shapeOf(keys);
  const layers = keys.number('block_count') - keys.number('nextn_predict_layers', 0);
  const interval = keys.number('full_attention_interval', 4);
  const recurrent = keys.list('attention.recurrent_layers');
  const isLinear = (layer: number) => (recurrent ? recurrent[layer] === 1 : (layer + 1) % interval !== 0);
  // Positions of images. Those of text are the same in all of its parts.
  keys.ignore('rope.dimension_sections');
  return {
    ...attentionBias(keys, tensors),
    num_hidden_layers: layers,
    layer_types: Array.from({ length: layers }, (_, layer) =>
      isLinear(layer) ? 'linear_attention' : 'full_attention',
    ),
    partial_rotary_factor: keys.number('rope.dimension_count') / keys.number('attention.key_length'),
    linear_num_key_heads: keyHeads,
    linear_num_value_heads: heads,
    linear_key_head_dim: keySize,
    linear_value_head_dim: valueSize,
    linear_conv_kernel_dim: keys.number('ssm.conv_kernel'),
  };
}

/** The heads of values are in another order. */
function movedHeads(keys: GgufKeys) {
  const { valueSize, keySize, ...heads } = shapeOf(keys);
  const values = byKeyHead(heads, valueSize);
  const behindKeys = byKeyHead(heads, valueSize, 2 * heads.keyHeads * keySize);
  const oneRow = byKeyHead(heads, 1);
  return [
    { from: ['attn_qkv'], rows: behindKeys },
    { from: ['ssm_conv1d'], rows: behindKeys },
    { from: ['attn_gate'], rows: values },
    { from: ['ssm_out'], columns: values },
    ...['ssm_beta', 'ssm_alpha', 'ssm_dt', 'ssm_a'].map((name) => ({ from: [name], rows: oneRow })),
  ];
}

/** For each head of keys its query, its key, its values and their gates. */
function movedBlocks(keys: GgufKeys) {
  const { keyHeads, heads, keySize, valueSize } = shapeOf(keys);
  const count = (heads / keyHeads) * valueSize;
  const rows = stacked([
    { source: 0, first: 0, count: keySize },
    { source: 0, first: keyHeads * keySize, count: keySize },
    { source: 0, first: 2 * keyHeads * keySize, count },
    { source: 1, first: 0, count },
  ]);
  return [{ from: ['attn_qkv', 'attn_gate'], rows }];
}

export const LINEAR_ATTENTION_ARCHITECTURES: readonly Architecture[] = [
  { name: 'qwen35', moved: movedHeads, config: config('qwen3_5_text', fields) },
  {
    name: 'qwen35moe',
    moved: movedHeads,
    config: config('qwen3_5_moe_text', (keys, tensors) => {
      const {
        decoder_sparse_step: _,
        mlp_only_layers: __,
        ...experts
      } = qwenSharedExperts(true)(keys, tensors);
      return { ...experts, ...fields(keys, tensors) };
    }),
  },
  {
    name: 'qwen3next',
    moved: movedBlocks,
    config: config('qwen3_next', (keys, tensors) => ({
      ...qwenSharedExperts(true)(keys, tensors),
      ...fields(keys, tensors),
    })),
  },
];
