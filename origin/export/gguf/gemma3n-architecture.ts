import { normalShare } from '../families/attention/gemma3n-rows.ts';
import { type Architecture, headSizeOf, layerTypes, type StoredTensors } from './architecture.ts';
import { byLayer } from './gemma4-architecture.ts';
import type { GgufKeys } from './gguf-keys.ts';

/**
 * The shares of gates that do not pass, from thresholds in deviations, which the file has in single
 * precision. −∞ = all pass.
 */
function shares(keys: GgufKeys): readonly number[] {
  const thresholds = keys.list('activation_sparsity_scale') ?? [];
  return thresholds.map((threshold) =>
    threshold === -Infinity ? 0 : Number(normalShare(threshold).toPrecision(7)),
  );
}

function config(keys: GgufKeys, tensors: StoredTensors) {
  const layers = keys.number('block_count');
  const headSize = headSizeOf(keys);
  keys.require('attention.value_length', headSize);
  keys.require('rope.dimension_count', headSize);
  const softCap = 'final_logit_softcapping';
  return {
    model_type: 'gemma3n_text',
    hidden_size: keys.number('embedding_length'),
    num_attention_heads: keys.number('attention.head_count'),
    num_key_value_heads: keys.number('attention.head_count_kv'),
    head_dim: headSize,
    num_hidden_layers: layers,
    num_kv_shared_layers: keys.number('attention.shared_kv_layers'),
    intermediate_size: byLayer(keys, 'feed_forward_length', layers),
    max_position_embeddings: keys.number('context_length'),
    rms_norm_eps: keys.number('attention.layer_norm_rms_epsilon'),
    hidden_activation: 'gelu_pytorch_tanh',
    sliding_window: keys.number('attention.sliding_window'),
    layer_types: layerTypes(keys, (layer) => (layer + 1) % 5 !== 0),
    ...(keys.has(softCap) && { [softCap]: keys.number(softCap) }),
    rope_theta: keys.number('rope.freq_base', 1_000_000),
    rope_local_base_freq: keys.number('rope.freq_base_swa', 10_000),
    hidden_size_per_layer_input: keys.number('embedding_length_per_layer_input'),
    vocab_size_per_layer_input: tensors.shape('per_layer_token_embd.weight')[0],
    altup_active_idx: keys.number('altup.active_idx'),
    altup_num_inputs: keys.number('altup.num_inputs'),
    laurel_rank: tensors.shape('blk.0.laurel_l.weight')[0],
    activation_sparsity_pattern: shares(keys),
  };
}

export const GEMMA3N_ARCHITECTURE: Architecture = { name: 'gemma3n', config };
