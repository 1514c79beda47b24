import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ElementType } from '../../origin/model/onnx/onnx-graph.ts';
import { FLOAT16_VALUES } from '../../shared/float16.ts';
import { readTensors, type StoredTensor } from './float64-tensors.ts';

/** The weights of a Llama-style ONNX file in float64, and the sizes in its config.json. */

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

function toDoubles({ type, bytes }: StoredTensor): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (type === ElementType.float32) {
    return Float64Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  }
  if (type === ElementType.float16) {
    return Float64Array.from(
      { length: bytes.length / 2 },
      (_, i) => FLOAT16_VALUES[view.getUint16(2 * i, true)]!,
    );
  }
  if (type === ElementType.bfloat16) {
    const words = Uint32Array.from({ length: bytes.length / 2 }, (_, i) => view.getUint16(2 * i, true) << 16);
    return Float64Array.from(new Float32Array(words.buffer));
  }
  throw new Error(`tensor type ${type} is not expected here`);
}

/** Weights [N, blocks, packed block] in 4 or 8 bits and one scale a block to a dense matrix. */
function dequantise(bits: 4 | 8, quantised: StoredTensor, scales: Float64Array): Linear {
  const [outputs, blocks, packed] = quantised.dims as [number, number, number];
  const block = (packed * 8) / bits;
  const weight = new Float64Array(outputs * blocks * block);
  for (let i = 0; i < weight.length; i++) {
    // MatMulNBits without zero points stores value / scale + 2^(bits - 1), 4-bit values low nibble first.
    const byte = quantised.bytes[bits === 8 ? i : i >> 1]!;
    const level = bits === 8 ? byte - 128 : ((byte >> (4 * (i & 1))) & 15) - 8;
    weight[i] = level * scales[Math.floor(i / block)]!;
  }
  return { outputs, inputs: blocks * block, weight };
}

/** A dense matrix in MatMul's layout, [inputs, outputs]. */
function transposed({ dims }: StoredTensor, stored: Float64Array): Linear {
  const [inputs, outputs] = dims as [number, number];
  const weight = new Float64Array(stored.length);
  for (let i = 0; i < stored.length; i++)
    weight[(i % outputs) * inputs + Math.floor(i / outputs)] = stored[i]!;
  return { outputs, inputs, weight };
}

/** The rows of one of the three projections that are joined in one matrix. */
function partOf({ inputs, weight }: Linear, letter: string, sizes: Sizes): Linear {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: size } = sizes;
  const outputs = (letter === 'q' ? heads : kvHeads) * size;
  const first = { q: 0, k: heads, v: heads + kvHeads }[letter]! * size;
  const part = weight.subarray(first * inputs, (first + outputs) * inputs);
  // The builder multiplies them by the scale of attention.
  return { outputs, inputs, weight: letter === 'q' ? part.map((value) => value * Math.sqrt(size)) : part };
}

/** Returns the name that `continuo model build` gives a matrix, and the letter of a joined projection. */
function builtName(name: string): { matrix: string; letter: string | undefined } {
  const [, layer, letter] = /^(.*)\.attn\.([qkv])_proj$/.exec(name) ?? [];
  if (letter === undefined) return { matrix: `${name.replace('.attn.', '.self_attn.')}.weight`, letter };
  return { matrix: [...'qkv'].map((each) => `${layer}.self_attn.${each}_proj.weight`).join('|'), letter };
}

/** The weights by name, each converted on first use. */
export interface WeightFile {
  readonly sizes: Sizes;
  vector(name: string): Float64Array;
  linear(name: string): Linear;
}

/**
 * Reads `model.onnx` (MatMul, MatMulNBits of 4 or 8 bits, or MatMulInteger; or a graph of `continuo model
 * build` with 8 bits) and the `config.json` in its folder.
 * @param parts further graphs of the model, such as the one of the embedding
 */
export function openWeights(modelPath: string, parts: readonly string[] = []): WeightFile {
  const config = JSON.parse(readFileSync(path.join(path.dirname(modelPath), 'config.json'), 'utf8'));
  const sizes: Sizes = config.text_config ?? config;
  const tensors = new Map([modelPath, ...parts].flatMap((file) => [...readTensors(file)]));
  const stored = (name: string): StoredTensor => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`${modelPath} has no tensor ${name}`);
    return tensor;
  };
  const isBuilt = (name: string) => tensors.has(`${name}/scales`) || tensors.has(`${name}/row-scales`);
  const built = (name: string): Linear => {
    const levels = tensors.get(`${name}/levels`) ?? stored(`${name}/levels/rows`);
    const scales = tensors.get(`${name}/scales`) ?? stored(`${name}/row-scales`);
    const dims = [...scales.dims, levels.bytes.length / (scales.bytes.length / 4)];
    return dequantise(8, { ...levels, dims }, toDoubles(scales));
  };
  const vector = (name: string) => (isBuilt(name) ? built(name).weight : toDoubles(stored(name)));
  const linear = (name: string): Linear => {
    const dense = tensors.get(`${name}.weight`);
    if (dense) return transposed(dense, toDoubles(dense));
    const whole = tensors.get(`${name}.weight_quantized`);
    if (whole) {
      const [scale] = vector(`${name}.weight_scale`);
      return transposed(
        whole,
        Float64Array.from(new Int8Array(whole.bytes), (level) => level * scale!),
      );
    }
    const { matrix, letter } = builtName(name);
    if (isBuilt(matrix)) {
      return letter === undefined ? built(matrix) : partOf(built(matrix), letter, sizes);
    }
    const bits = tensors.has(`${name}.weight_Q4`) ? 4 : 8;
    return dequantise(bits, stored(`${name}.weight_Q${bits}`), vector(`${name}.weight_scales`));
  };
  return { sizes, vector, linear };
}

/** All weights of a model, from `openWeights`. */
export function readWeights(modelPath: string, parts: readonly string[] = []): Weights {
  const { sizes, vector, linear } = openWeights(modelPath, parts);
  const layer = (index: number): Layer => {
    const name = `model.layers.${index}`;
    return {
      inputNorm: vector(`${name}.input_layernorm.weight`),
      query: linear(`${name}.attn.q_proj`),
      key: linear(`${name}.attn.k_proj`),
      value: linear(`${name}.attn.v_proj`),
      output: linear(`${name}.attn.o_proj`),
      mlpNorm: vector(`${name}.post_attention_layernorm.weight`),
      gate: linear(`${name}.mlp.gate_proj`),
      up: linear(`${name}.mlp.up_proj`),
      down: linear(`${name}.mlp.down_proj`),
    };
  };
  return {
    sizes,
    embedding: vector('model.embed_tokens.weight'),
    layers: Array.from({ length: sizes.num_hidden_layers }, (_, index) => layer(index)),
    finalNorm: vector('model.norm.weight'),
    head: linear('lm_head'),
  };
}
