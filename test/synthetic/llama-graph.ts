import { MICROSOFT, OnnxWriter } from './onnx-writer.ts';
import { quantizeBlocks, toFloat16, transpose, WeightSource } from './random-weights.ts';

export interface SyntheticModel {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headSize: number;
  /** Width of the gated feed-forward layer. */
  readonly intermediate: number;
  readonly vocabulary: number;
  readonly contextLength: number;
  readonly ropeTheta: number;
  readonly normEpsilon: number;
  /** Linear layers as MatMul, or as MatMulNBits with 4 or 8 bits (accuracy level 4). */
  readonly quantization: 'none' | 'q4' | 'q8';
  /** Block size of the quantisation; divides hidden, heads · headSize and intermediate. */
  readonly block: number;
  /** Type of weights, activations and KV; logits are float32 either way. */
  readonly precision: 'float32' | 'float16';
  /** Explicit position_ids input [batch, sequence] besides the attention mask. */
  readonly positionIds: boolean;
  /** Weights in model.onnx.data beside model.onnx. */
  readonly externalData: boolean;
  readonly seed: number;
}

const EMBEDDING = 'model.embed_tokens.weight';
const layerName = (layer: number) => `model.layers.${layer}`;

/** Llama with GroupQueryAttention, laid out as onnxruntime-genai's builder and onnx-community lay it out. */
export function llamaGraph(model: SyntheticModel): OnnxWriter {
  const builder = new LlamaBuilder(model);
  builder.inputs();
  builder.tables();
  const embedded = builder.writer.node('Gather', [EMBEDDING, 'input_ids'], ['embedded']);
  let residual = embedded;
  let normed = builder.firstNorm(embedded);
  for (let layer = 0; layer < model.layers; layer++) {
    const attended = builder.attention(layer, normed);
    [normed, residual] = builder.addAndNorm(
      `${layerName(layer)}.post_attention_layernorm`,
      residual,
      attended,
    );
    const fed = builder.feedForward(layer, normed);
    const next = layer + 1 < model.layers ? `${layerName(layer + 1)}.input_layernorm` : 'model.norm';
    [normed, residual] = builder.addAndNorm(next, residual, fed);
  }
  builder.head(normed);
  return builder.writer;
}

class LlamaBuilder {
  readonly writer: OnnxWriter;
  readonly #model: SyntheticModel;
  readonly #weights: WeightSource;

  constructor(model: SyntheticModel) {
    this.#model = model;
    this.#weights = new WeightSource(model.seed);
    this.writer = new OnnxWriter(model.externalData ? 'model.onnx.data' : undefined);
  }

  inputs(): void {
    const { layers, kvHeads, headSize, precision, vocabulary, positionIds } = this.#model;
    this.writer.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
    this.writer.input('attention_mask', 'int64', ['batch_size', 'total_sequence_length']);
    if (positionIds) this.writer.input('position_ids', 'int64', ['batch_size', 'sequence_length']);
    this.writer.output('logits', 'float32', ['batch_size', 'sequence_length', vocabulary]);
    for (let layer = 0; layer < layers; layer++) {
      for (const part of ['key', 'value']) {
        const past = ['batch_size', kvHeads, 'past_sequence_length', headSize];
        const present = ['batch_size', kvHeads, 'total_sequence_length', headSize];
        this.writer.input(`past_key_values.${layer}.${part}`, precision, past);
        this.writer.output(`present.${layer}.${part}`, precision, present);
      }
    }
  }

  /** Embedding, rotary tables, and the mask's two derivatives GroupQueryAttention reads. */
  tables(): void {
    const { vocabulary, hidden, contextLength, headSize, ropeTheta } = this.#model;
    this.#floats(EMBEDDING, [vocabulary, hidden], this.#weights.normal(vocabulary * hidden, 1));
    const half = headSize / 2;
    const cosines = new Float32Array(contextLength * half);
    const sines = new Float32Array(contextLength * half);
    for (let i = 0; i < cosines.length; i++) {
      const angle = Math.floor(i / half) * ropeTheta ** ((-2 * (i % half)) / headSize);
      cosines[i] = Math.cos(angle);
      sines[i] = Math.sin(angle);
    }
    this.#floats('cos_cache', [contextLength, half], cosines);
    this.#floats('sin_cache', [contextLength, half], sines);
    const writer = this.writer;
    writer.initializer('one', 'int64', [1], BigInt64Array.of(1n));
    writer.node('ReduceSum', ['attention_mask', 'one'], ['mask_sum'], {
      attributes: { keepdims: { int: 0 } },
    });
    writer.node('Sub', ['mask_sum', 'one'], ['mask_last']);
    writer.node('Cast', ['mask_last'], ['seqlens_k'], { attributes: { to: { int: 6 } } });
    writer.node('Shape', ['attention_mask'], ['mask_shape']);
    writer.initializer('second', 'int64', [], BigInt64Array.of(1n));
    writer.node('Gather', ['mask_shape', 'second'], ['mask_length'], { attributes: { axis: { int: 0 } } });
    writer.node('Cast', ['mask_length'], ['total_length'], { attributes: { to: { int: 6 } } });
  }

  firstNorm(input: string): string {
    return this.writer.node(
      'SimplifiedLayerNormalization',
      [input, this.#normWeight(`${layerName(0)}.input_layernorm`)],
      [`${layerName(0)}.input_layernorm.out`],
      { attributes: { epsilon: { float: this.#model.normEpsilon }, axis: { int: -1 } } },
    );
  }

  /** The norm of residual + delta, and that sum. */
  addAndNorm(name: string, residual: string, delta: string): [normed: string, sum: string] {
    const sum = `${name}.sum`;
    const normed = this.writer.node(
      'SkipSimplifiedLayerNormalization',
      [residual, delta, this.#normWeight(name)],
      [`${name}.out`, '', '', sum],
      { domain: MICROSOFT, attributes: { epsilon: { float: this.#model.normEpsilon } } },
    );
    return [normed, sum];
  }

  attention(layer: number, input: string): string {
    const { hidden, heads, kvHeads, headSize, positionIds } = this.#model;
    const name = `${layerName(layer)}.attn`;
    const query = this.#linear(`${name}.q_proj`, input, hidden, heads * headSize);
    const key = this.#linear(`${name}.k_proj`, input, hidden, kvHeads * headSize);
    const value = this.#linear(`${name}.v_proj`, input, hidden, kvHeads * headSize);
    const past = [`past_key_values.${layer}.key`, `past_key_values.${layer}.value`];
    const tables = [
      'seqlens_k',
      'total_length',
      'cos_cache',
      'sin_cache',
      ...(positionIds ? ['position_ids'] : []),
    ];
    const attended = this.writer.node(
      'GroupQueryAttention',
      [query, key, value, ...past, ...tables],
      [`${name}.out`, `present.${layer}.key`, `present.${layer}.value`],
      {
        domain: MICROSOFT,
        attributes: {
          num_heads: { int: heads },
          kv_num_heads: { int: kvHeads },
          scale: { float: 1 / Math.sqrt(headSize) },
          do_rotary: { int: 1 },
          rotary_interleaved: { int: 0 },
          local_window_size: { int: -1 },
        },
      },
    );
    return this.#linear(`${name}.o_proj`, attended, heads * headSize, hidden);
  }

  feedForward(layer: number, input: string): string {
    const { hidden, intermediate } = this.#model;
    const name = `${layerName(layer)}.mlp`;
    const gate = this.#linear(`${name}.gate_proj`, input, hidden, intermediate);
    const up = this.#linear(`${name}.up_proj`, input, hidden, intermediate);
    const sigmoid = this.writer.node('Sigmoid', [gate], [`${name}.sigmoid`]);
    const silu = this.writer.node('Mul', [gate, sigmoid], [`${name}.silu`]);
    const gated = this.writer.node('Mul', [silu, up], [`${name}.gated`]);
    return this.#linear(`${name}.down_proj`, gated, intermediate, hidden);
  }

  head(input: string): void {
    const { hidden, vocabulary, precision } = this.#model;
    if (precision === 'float32') {
      this.#linear('lm_head', input, hidden, vocabulary, 'logits');
      return;
    }
    const half = this.#linear('lm_head', input, hidden, vocabulary);
    this.writer.node('Cast', [half], ['logits'], { attributes: { to: { int: 1 } } });
  }

  #normWeight(name: string): string {
    const { hidden } = this.#model;
    return this.#floats(`${name}.weight`, [hidden], this.#weights.normal(hidden, 0.1, 1));
  }

  #linear(name: string, input: string, rows: number, columns: number, output = `${name}.out`): string {
    const { quantization, block, precision } = this.#model;
    const transposed = this.#weights.normal(rows * columns, 1 / Math.sqrt(rows));
    if (quantization === 'none') {
      const weight = this.#floats(`${name}.weight`, [rows, columns], transpose(transposed, columns, rows));
      return this.writer.node('MatMul', [input, weight], [output]);
    }
    const bits = quantization === 'q4' ? 4 : 8;
    const { packed, scales } = quantizeBlocks(transposed, bits, block);
    const shape = [columns, rows / block, (block * bits) / 8];
    const weight = this.writer.initializer(`${name}.weight_Q${bits}`, 'uint8', shape, packed);
    return this.writer.node(
      'MatMulNBits',
      [input, weight, this.#floats(`${name}.weight_scales`, [scales.length], scales)],
      [output],
      {
        domain: MICROSOFT,
        attributes: {
          K: { int: rows },
          N: { int: columns },
          bits: { int: bits },
          block_size: { int: block },
          accuracy_level: { int: precision === 'float32' ? 4 : 0 },
        },
      },
    );
  }

  #floats(name: string, dimensions: readonly number[], values: Float32Array): string {
    const { precision } = this.#model;
    return this.writer.initializer(
      name,
      precision,
      dimensions,
      precision === 'float32' ? values : toFloat16(values),
    );
  }
}
