import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Linear, readWeights } from '../../support/float64-weights.ts';
import {
  llamaConfig,
  type SyntheticModel,
  writeJson,
  writeSyntheticModel,
} from '../../support/synthetic/synthetic-model.ts';

/** Writes checkpoints in safetensors, independently of the origin's reader. */

export interface WrittenTensor {
  readonly shape: readonly number[];
  readonly values: ArrayLike<number>;
}

export type WrittenTensors = Readonly<Record<string, WrittenTensor>>;
export type WrittenType = 'F64' | 'F32' | 'F16' | 'BF16';

/** Returns the bytes of one file. */
export function safetensorsBytes(tensors: WrittenTensors, type: WrittenType = 'F32'): Uint8Array {
  const parts = Object.entries(tensors).map(([name, { shape, values }]) => ({
    name,
    shape,
    bytes: encode(values, type),
  }));
  let at = 0;
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  for (const { name, shape, bytes } of parts) {
    header[name] = { dtype: type, shape, data_offsets: [at, at + bytes.length] };
    at += bytes.length;
  }
  return withHeader(header, Buffer.concat(parts.map(({ bytes }) => bytes)));
}

/** Puts a header, right or wrong, before the data. */
export function withHeader(header: unknown, data: Uint8Array): Uint8Array {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return new Uint8Array(Buffer.concat([length, text, data]));
}

function encode(values: ArrayLike<number>, type: WrittenType): Uint8Array {
  if (type === 'F64') return new Uint8Array(Float64Array.from(values).buffer);
  const floats = Float32Array.from(values);
  if (type === 'F32') return new Uint8Array(floats.buffer);
  if (type === 'F16') return new Uint8Array(Uint16Array.from(floats, float16Bits).buffer);
  return new Uint8Array(Uint16Array.from(new Uint32Array(floats.buffer), roundedUpperHalf).buffer);
}

/** bfloat16: the upper half of a float32, rounded to nearest even. */
const roundedUpperHalf = (word: number): number => (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;

/** By search over the exponent, so that it shares nothing with the origin's conversion. */
function float16Bits(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  const exponent = magnitude === 0 ? -14 : Math.max(-14, Math.floor(Math.log2(magnitude)));
  const units = magnitude / 2 ** (exponent - 10);
  const floor = Math.floor(units);
  const up = units - floor > 0.5 || (units - floor === 0.5 && floor % 2 === 1) ? 1 : 0;
  return sign | ((exponent + 14) * 1024 + floor + up);
}

/** A checkpoint and the synthetic ONNX model with the same weights, which float64Llama reads. */
export interface LlamaCheckpoint {
  readonly directory: string;
  readonly reference: string;
  readonly model: SyntheticModel;
  readonly tensors: WrittenTensors;
}

/** Writes a random Llama as a checkpoint in `folder`/checkpoint. */
export function writeLlama(
  folder: string,
  options: Partial<SyntheticModel> = {},
  type: WrittenType = 'F32',
): LlamaCheckpoint {
  const reference = join(folder, 'reference');
  const model = writeSyntheticModel(reference, options);
  const tensors = llamaTensors(join(reference, 'model.onnx'));
  const directory = join(folder, 'checkpoint');
  mkdirSync(directory, { recursive: true });
  writeJson(join(directory, 'config.json'), {
    architectures: ['LlamaForCausalLM'],
    hidden_act: 'silu',
    tie_word_embeddings: false,
    ...llamaConfig(model),
  });
  writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(tensors, type));
  return { directory, reference, model, tensors };
}

function llamaTensors(modelPath: string): WrittenTensors {
  const { embedding, layers, finalNorm, head, sizes } = readWeights(modelPath);
  const matrix = ({ outputs, inputs, weight }: Linear) => ({ shape: [outputs, inputs], values: weight });
  const vector = (values: Float64Array) => ({ shape: [values.length], values });
  const tensors: Record<string, WrittenTensor> = {
    'model.embed_tokens.weight': { shape: [sizes.vocab_size, sizes.hidden_size], values: embedding },
    'model.norm.weight': vector(finalNorm),
    'lm_head.weight': matrix(head),
  };
  for (const [index, layer] of layers.entries()) {
    const name = `model.layers.${index}`;
    Object.assign(tensors, {
      [`${name}.input_layernorm.weight`]: vector(layer.inputNorm),
      [`${name}.post_attention_layernorm.weight`]: vector(layer.mlpNorm),
      [`${name}.self_attn.q_proj.weight`]: matrix(layer.query),
      [`${name}.self_attn.k_proj.weight`]: matrix(layer.key),
      [`${name}.self_attn.v_proj.weight`]: matrix(layer.value),
      [`${name}.self_attn.o_proj.weight`]: matrix(layer.output),
      [`${name}.mlp.gate_proj.weight`]: matrix(layer.gate),
      [`${name}.mlp.up_proj.weight`]: matrix(layer.up),
      [`${name}.mlp.down_proj.weight`]: matrix(layer.down),
    });
  }
  return tensors;
}
