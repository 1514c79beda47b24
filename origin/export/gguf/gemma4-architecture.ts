import { type Architecture, layerTypes, type StoredTensors } from './architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';

/** A number for all layers, or one for each. @throws ModelError */
export function byLayer(keys: GgufKeys, name: string, layers: number): readonly number[] {
  if (typeof keys.value(name) === 'number') return Array<number>(layers).fill(keys.number(name));
  const values = keys.list(name) ?? [];
  if (values.length === layers) return values;
  throw keys.fault(name, `a number, or a list of ${layers}`);
}

/** The share of pairs that rotate in layers without a window: the others have a very large divisor. */
function rotatedShare(keys: GgufKeys, tensors: StoredTensors, headSize: number): number {
  keys.require('rope.dimension_count', headSize);
  const divisors = tensors.values('rope_freqs.weight') ?? Array<number>(headSize / 2).fill(1);
  const rotated = divisors.lastIndexOf(1) + 1;
  const isPlain = divisors.every((divisor, pair) => (pair < rotated ? divisor === 1 : divisor >= 1e30));
  if (isPlain && divisors.length === headSize / 2) return rotated / divisors.length;
  throw keys.fault('rope.dimension_count', 'with divisors of 1, then of 10³⁰, in rope_freqs');
}

function experts(keys: GgufKeys) {
  if (!keys.has('expert_count')) return {};
  return {
    enable_moe_block: true,
    num_experts: keys.number('expert_count'),
    top_k_experts: keys.number('expert_used_count'),
    moe_intermediate_size: keys.number('expert_feed_forward_length'),
  };
}

/** Shared layers may have an MLP of twice the width. */
function widths(keys: GgufKeys, layers: number, shared: number) {
  const all = byLayer(keys, 'feed_forward_length', layers);
  const first = all[0]!;
  const isDouble = shared > 0 && all.at(-1) === 2 * first;
  const isKnown = all.every(
    (width, layer) => width === (isDouble && layer >= layers - shared ? 2 : 1) * first,
  );
  if (!isKnown) throw keys.fault('feed_forward_length', 'one width, twice as large in shared layers or not');
  return { intermediate_size: first, use_double_wide_mlp: isDouble };
}

function kvHeads(keys: GgufKeys, tensors: StoredTensors, types: readonly string[]) {
  const all = byLayer(keys, 'attention.head_count_kv', types.length);
  const of = (type: string) => all.filter((_, layer) => types[layer] === type);
  const full = of('full_attention');
  const sliding = of('sliding_attention');
  const sameKeys = !tensors.has(`blk.${types.indexOf('full_attention')}.attn_v.weight`);
  const heads = sliding[0] ?? full[0];
  const isKnown = full.every((count) => count === (sameKeys ? full[0] : heads));
  if (!isKnown || sliding.some((count) => count !== heads))
    throw keys.fault('attention.head_count_kv', 'one number for each type of layers');
  return {
    num_key_value_heads: heads,
    attention_k_eq_v: sameKeys,
    ...(sameKeys && { num_global_key_value_heads: full[0] }),
  };
}

function config(keys: GgufKeys, tensors: StoredTensors) {
  const layers = keys.number('block_count');
  const shared = keys.number('attention.shared_kv_layers', 0);
  const headSize = keys.number('attention.key_length_swa');
  const globalSize = keys.number('attention.key_length');
  keys.require('attention.value_length_swa', headSize);
  keys.require('attention.value_length', globalSize);
  keys.require('rope.dimension_count_swa', headSize);
  const types = layerTypes(keys, (layer) => (layer + 1) % 6 !== 0);
  return {
    model_type: 'gemma4_text',
    hidden_size: keys.number('embedding_length'),
    num_attention_heads: keys.number('attention.head_count'),
    head_dim: headSize,
    global_head_dim: globalSize,
    num_hidden_layers: layers,
    num_kv_shared_layers: shared,
    max_position_embeddings: keys.number('context_length'),
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    hidden_activation: 'gelu_pytorch_tanh',
    sliding_window: keys.number('attention.sliding_window'),
    layer_types: types,
    final_logit_softcapping: keys.has('final_logit_softcapping')
      ? keys.number('final_logit_softcapping')
      : null,
    hidden_size_per_layer_input: keys.number('embedding_length_per_layer_input', 0),
    vocab_size_per_layer_input: tensors.shape('token_embd.weight')[0],
    rope_parameters: {
      sliding_attention: { rope_type: 'default', rope_theta: keys.number('rope.freq_base_swa', 10_000) },
      full_attention: {
        rope_type: 'proportional',
        partial_rotary_factor: rotatedShare(keys, tensors, globalSize),
        rope_theta: keys.number('rope.freq_base', 1_000_000),
      },
    },
    ...kvHeads(keys, tensors, types),
    ...widths(keys, layers, shared),
    ...experts(keys),
  };
}

export const GEMMA4_ARCHITECTURE: Architecture = { name: 'gemma4', config };
