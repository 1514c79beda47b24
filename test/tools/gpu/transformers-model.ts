import { closeSync, copyFileSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openWeights, type WeightFile } from '../../support/float64-weights.ts';

/** A tensor under its name in transformers. */
interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
  read(): Float64Array;
}

const FLOAT32_BYTES = 4;

/**
 * Writes the weights of a Llama-style `model.onnx` for transformers: config.json, and model.safetensors in
 * float32 with the dequantised weights.
 */
export function writeTransformersModel(source: string, directory: string): void {
  mkdirSync(directory, { recursive: true });
  copyFileSync(path.join(source, 'config.json'), path.join(directory, 'config.json'));
  const tensors = llamaTensors(openWeights(path.join(source, 'model.onnx')));
  const file = openSync(path.join(directory, 'model.safetensors'), 'w');
  try {
    const header = Buffer.from(JSON.stringify(headerOf(tensors)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeFileSync(file, length);
    writeFileSync(file, header);
    for (const { read } of tensors) writeFileSync(file, Buffer.from(Float32Array.from(read()).buffer));
  } finally {
    closeSync(file);
  }
}

function headerOf(tensors: readonly Tensor[]): object {
  let end = 0;
  const entries = tensors.map(({ name, shape }) => {
    const start = end;
    end += FLOAT32_BYTES * shape.reduce((product, size) => product * size, 1);
    return [name, { dtype: 'F32', shape, data_offsets: [start, end] }] as const;
  });
  return { __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) };
}

function llamaTensors({ sizes, vector, linear }: WeightFile): Tensor[] {
  const { vocab_size, hidden_size, intermediate_size, num_hidden_layers, head_dim } = sizes;
  const queries = sizes.num_attention_heads * head_dim;
  const keys = sizes.num_key_value_heads * head_dim;
  const matrix = (name: string, rows: number, columns: number, stored = name): Tensor => ({
    name: `${name}.weight`,
    shape: [rows, columns],
    read: () => linear(stored).weight,
  });
  const norm = (name: string): Tensor => ({
    name: `${name}.weight`,
    shape: [hidden_size],
    read: () => vector(`${name}.weight`),
  });
  const layer = (index: number): Tensor[] => {
    const name = `model.layers.${index}`;
    const attention = (part: string, rows: number, columns: number) =>
      matrix(`${name}.self_attn.${part}`, rows, columns, `${name}.attn.${part}`);
    return [
      norm(`${name}.input_layernorm`),
      attention('q_proj', queries, hidden_size),
      attention('k_proj', keys, hidden_size),
      attention('v_proj', keys, hidden_size),
      attention('o_proj', hidden_size, queries),
      norm(`${name}.post_attention_layernorm`),
      matrix(`${name}.mlp.gate_proj`, intermediate_size, hidden_size),
      matrix(`${name}.mlp.up_proj`, intermediate_size, hidden_size),
      matrix(`${name}.mlp.down_proj`, hidden_size, intermediate_size),
    ];
  };
  const embedding = 'model.embed_tokens.weight';
  return [
    { name: embedding, shape: [vocab_size, hidden_size], read: () => vector(embedding) },
    ...Array.from({ length: num_hidden_layers }, (_, index) => layer(index)).flat(),
    norm('model.norm'),
    matrix('lm_head', vocab_size, hidden_size),
  ];
}
