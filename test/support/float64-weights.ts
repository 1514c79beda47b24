import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readTensors, type StoredTensor } from './float64-tensors.ts';

/** The weights of a Llama-style ONNX file as doubles, and the sizes that its config.json promises. */

export interface Sizes {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly rope_theta: number;
  readonly rms_norm_eps: number;
}

/** A linear map; `weight` holds [outputs, inputs] row by row. */
export interface Linear {
  readonly outputs: number;
  readonly inputs: number;
  readonly weight: Float64Array;
}

export interface Layer {
  readonly inputNorm: Float64Array;
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly output: Linear;
  readonly mlpNorm: Float64Array;
  readonly gate: Linear;
  readonly up: Linear;
  readonly down: Linear;
}

export interface Weights {
  readonly sizes: Sizes;
  /** [vocab_size, hidden_size] */
  readonly embedding: Float64Array;
  readonly layers: readonly Layer[];
  readonly finalNorm: Float64Array;
  readonly head: Linear;
}

const ONNX_FLOAT = 1;
const ONNX_FLOAT16 = 10;
/** MatMulNBits without zero points stores value / scale + 128. */
const ZERO_POINT = 128;

function halfToNumber(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function toDoubles({ type, bytes }: StoredTensor): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (type === ONNX_FLOAT) {
    return Float64Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  }
  if (type === ONNX_FLOAT16) {
    return Float64Array.from({ length: bytes.length / 2 }, (_, i) =>
      halfToNumber(view.getUint16(2 * i, true)),
    );
  }
  throw new Error(`tensor type ${type} is not expected here`);
}

/** Weights [N, blocks, block] in 8 bits and one scale a block to a dense matrix. */
function dequantise(quantised: StoredTensor, scales: Float64Array): Linear {
  const [outputs, blocks, block] = quantised.dims as [number, number, number];
  const weight = new Float64Array(outputs * blocks * block);
  for (let i = 0; i < weight.length; i++) {
    weight[i] = (quantised.bytes[i]! - ZERO_POINT) * scales[Math.floor(i / block)]!;
  }
  return { outputs, inputs: blocks * block, weight };
}

/** Reads `model.onnx` and the `config.json` beside it. */
export function readWeights(modelPath: string): Weights {
  const sizes: Sizes = JSON.parse(readFileSync(path.join(path.dirname(modelPath), 'config.json'), 'utf8'));
  const tensors = readTensors(modelPath);
  const stored = (name: string): StoredTensor => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`${modelPath} has no tensor ${name}`);
    return tensor;
  };
  const doubles = (name: string) => toDoubles(stored(name));
  const linear = (name: string) => dequantise(stored(`${name}.weight_Q8`), doubles(`${name}.weight_scales`));
  const layer = (index: number): Layer => {
    const name = `model.layers.${index}`;
    return {
      inputNorm: doubles(`${name}.input_layernorm.weight`),
      query: linear(`${name}.attn.q_proj`),
      key: linear(`${name}.attn.k_proj`),
      value: linear(`${name}.attn.v_proj`),
      output: linear(`${name}.attn.o_proj`),
      mlpNorm: doubles(`${name}.post_attention_layernorm.weight`),
      gate: linear(`${name}.mlp.gate_proj`),
      up: linear(`${name}.mlp.up_proj`),
      down: linear(`${name}.mlp.down_proj`),
    };
  };
  return {
    sizes,
    embedding: doubles('model.embed_tokens.weight'),
    layers: Array.from({ length: sizes.num_hidden_layers }, (_, index) => layer(index)),
    finalNorm: doubles('model.norm.weight'),
    head: linear('lm_head'),
  };
}
