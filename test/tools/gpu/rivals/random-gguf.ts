import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { toFloat16 } from '../../../../shared/float16.ts';
import { ggufHeader, padded, type TensorInfo, type Value } from '../../../origin/export/gguf/gguf-writer.ts';
import type { Sizes } from '../../../support/float64-weights.ts';
import { WeightSource } from '../../../support/synthetic/random-weights.ts';

interface Config extends Sizes {
  readonly max_position_embeddings: number;
  readonly bos_token_id: number;
  readonly eos_token_id: number;
}

interface TokenizerFile {
  readonly added_tokens: readonly { readonly id: number; readonly content: string }[];
  readonly model: { readonly vocab: Readonly<Record<string, number>>; readonly merges: readonly string[] };
}

/** Numbers of types in the format. */
const TYPE = { float32: 0, float16: 1 };
const TOKEN = { normal: 1, control: 3 };
/** File type "mostly F16". */
const MOSTLY_F16 = 1;

/** Values of matrices repeat after so many, a prime, so that rows differ. */
const PERIOD = 1_000_003;
const DEVIATION = 0.02;

const readJson = <T>(directory: string, name: string): T =>
  JSON.parse(readFileSync(path.join(directory, name), 'utf8')) as T;

/**
 * Writes a GGUF file with the sizes and the tokenizer of a synthetic Llama: random matrices in float16, norms
 * of ones. Every tensor has bytes of its own, so a server reads as much memory as with trained weights.
 */
export function writeRandomGguf(file: string, directory: string): void {
  const sizes = readJson<Config>(directory, 'config.json');
  const tensors = tensorsOf(sizes);
  const metadata = { ...metadataOf(sizes), ...vocabularyOf(readJson(directory, 'tokenizer.json'), sizes) };
  const values = Buffer.from(toFloat16(new WeightSource(1).normal(PERIOD, DEVIATION)).buffer);
  const handle = openSync(file, 'w');
  try {
    writeFileSync(handle, ggufHeader(metadata, tensors, bytesOf));
    for (const tensor of tensors) {
      const block = tensor.type === TYPE.float16 ? values : ones(tensor);
      const end = padded(bytesOf(tensor));
      for (let at = 0; at < end; at += block.length) writeFileSync(handle, block.subarray(0, end - at));
    }
  } finally {
    closeSync(handle);
  }
}

const bytesOf = ({ type, dimensions }: TensorInfo): number =>
  dimensions.reduce((product, size) => product * size, type === TYPE.float16 ? 2 : 4);

const ones = ({ dimensions }: TensorInfo): Buffer =>
  Buffer.from(new Float32Array(padded(dimensions[0]!)).fill(1).buffer);

function tensorsOf(sizes: Sizes): TensorInfo[] {
  const { hidden_size: hidden, intermediate_size: inner, vocab_size, head_dim } = sizes;
  const queries = sizes.num_attention_heads * head_dim;
  const keys = sizes.num_key_value_heads * head_dim;
  const norm = (name: string): TensorInfo => ({ name, type: TYPE.float32, dimensions: [hidden] });
  const matrix = (name: string, ...dimensions: readonly [number, number]): TensorInfo => ({
    name,
    type: TYPE.float16,
    dimensions,
  });
  const layer = (index: number): TensorInfo[] => [
    norm(`blk.${index}.attn_norm.weight`),
    matrix(`blk.${index}.attn_q.weight`, hidden, queries),
    matrix(`blk.${index}.attn_k.weight`, hidden, keys),
    matrix(`blk.${index}.attn_v.weight`, hidden, keys),
    matrix(`blk.${index}.attn_output.weight`, queries, hidden),
    norm(`blk.${index}.ffn_norm.weight`),
    matrix(`blk.${index}.ffn_gate.weight`, hidden, inner),
    matrix(`blk.${index}.ffn_up.weight`, hidden, inner),
    matrix(`blk.${index}.ffn_down.weight`, inner, hidden),
  ];
  return [
    matrix('token_embd.weight', hidden, vocab_size),
    ...Array.from({ length: sizes.num_hidden_layers }, (_, index) => layer(index)).flat(),
    norm('output_norm.weight'),
    matrix('output.weight', hidden, vocab_size),
  ];
}

const metadataOf = (sizes: Config): Record<string, Value> => ({
  'general.architecture': { text: 'llama' },
  'general.file_type': { u32: MOSTLY_F16 },
  'llama.context_length': { u32: sizes.max_position_embeddings },
  'llama.embedding_length': { u32: sizes.hidden_size },
  'llama.block_count': { u32: sizes.num_hidden_layers },
  'llama.feed_forward_length': { u32: sizes.intermediate_size },
  'llama.attention.head_count': { u32: sizes.num_attention_heads },
  'llama.attention.head_count_kv': { u32: sizes.num_key_value_heads },
  'llama.attention.key_length': { u32: sizes.head_dim },
  'llama.attention.value_length': { u32: sizes.head_dim },
  'llama.attention.layer_norm_rms_epsilon': { f32: sizes.rms_norm_eps },
  'llama.rope.freq_base': { f32: sizes.rope_theta },
  'llama.rope.dimension_count': { u32: sizes.head_dim },
  'llama.vocab_size': { u32: sizes.vocab_size },
});

function vocabularyOf({ added_tokens, model }: TokenizerFile, sizes: Config): Record<string, Value> {
  const texts: string[] = [];
  const kinds = new Array<number>(sizes.vocab_size).fill(TOKEN.normal);
  for (const [text, id] of Object.entries(model.vocab)) texts[id] = text;
  for (const { id, content } of added_tokens) {
    texts[id] = content;
    kinds[id] = TOKEN.control;
  }
  return {
    'tokenizer.ggml.model': { text: 'gpt2' },
    'tokenizer.ggml.pre': { text: 'gpt-2' },
    'tokenizer.ggml.tokens': { texts },
    'tokenizer.ggml.token_type': { i32s: kinds },
    'tokenizer.ggml.merges': { texts: model.merges },
    'tokenizer.ggml.bos_token_id': { u32: sizes.bos_token_id },
    'tokenizer.ggml.eos_token_id': { u32: sizes.eos_token_id },
  };
}
