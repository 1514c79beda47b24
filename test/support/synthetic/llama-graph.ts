import { ElementType } from '../../../origin/model/onnx/onnx-graph.ts';
import { type Attribute, MICROSOFT, OnnxWriter } from './onnx-writer.ts';
import { type AttentionFrame, PlainAttention } from './plain-attention.ts';
import { kvScales } from './quantized-kv.ts';
import { SyntheticWeights } from './synthetic-weights.ts';

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
  /**
   * Linear layers as MatMul, as MatMulNBits with 4 or 8 bits, as MatMulBnb4, or as MatMulInteger of 8 bits
   * with activations scaled by the largest of a run.
   */
  readonly quantization: 'none' | 'q4' | 'q8' | 'bnb4' | 'int8-dynamic';
  /**
   * GroupQueryAttention; or ONNX's own operators, the past concatenated; or those twice, in the branches of
   * an If that use_cache_branch chooses.
   */
  readonly attention: 'group-query' | 'concatenated' | 'merged';
  /**
   * Whether queries, keys and values come from one matrix, and matrices are stored transposed, as `continuo
   * model build` writes them.
   */
  readonly packed: boolean;
  /** Whether gate and up of the feed-forward layers are one product. */
  readonly joinsGate: boolean;
  /** For merged models: whether the branch that reads the past accepts several tokens or only one. */
  readonly cachedBranch: 'several-tokens' | 'one-token';
  /** Positions a token attends to, itself included; −1 = all. In the attention operator, else in the mask. */
  readonly slidingWindow: number;
  /** As builders from 0.15 on write it: GroupQueryAttention with sliding_window_cache = 1. */
  readonly windowedCache: boolean;
  /** Whether the last dimension of the past is a number, or the symbol of builders from 0.15 on. */
  readonly kvDimension: 'number' | 'symbol';
  /**
   * Length of a second, short pair of rotary tables, which is used while no row is longer; 0 = there is one
   * pair. For GroupQueryAttention only.
   */
  readonly shortRope: number;
  /** An input that says how many of the last positions get logits, as transformers.js's exports have it. */
  readonly logitsToKeep: 'none' | 'scalar' | 'list';
  /** Limits logits to ± this by tanh, as Gemma 2 does, with the steps' shapes; 0 = no limit. */
  readonly softCap: number;
  /** Casts the logits to float32 if the precision is float16. */
  readonly logits: 'float32' | 'float16';
  /** Block size of the quantisation; divides hidden, heads · headSize and intermediate. */
  readonly block: number;
  /** Accuracy level of MatMulNBits: 4 = activations in 8 bits, 0 = unchanged. */
  readonly accuracyLevel: 0 | 4;
  /** Type of weights, activations and KV. */
  readonly precision: 'float32' | 'float16' | 'bfloat16';
  /** Type of the KV cache of GroupQueryAttention; 8 bits are levels of a scale per tensor or per channel. */
  readonly kv: 'as-precision' | 'int8' | 'float8e4m3fn';
  readonly kvScales: 'per-tensor' | 'per-channel';
  /** Adds an input position_ids [batch, sequence] to the attention mask. */
  readonly positionIds: boolean;
  /** Stores the weights in a separate file. */
  readonly externalData: boolean;
  /** Whether all layers read the matrices of the first: a small file for a large network. */
  readonly sharesLayers: boolean;
  /**
   * Whether all layers have matrices of their own that name the place of the first's in the data file. So a
   * small file has the memory of a large network.
   */
  readonly repeatsLayers: boolean;
  /** Place of the token embedding: in the graph, or in a separate graph whose output this one reads. */
  readonly embedding: 'inside' | 'outside';
  readonly seed: number;
}

const EMBEDDING = 'model.embed_tokens.weight';
const layerName = (layer: number) => `model.layers.${layer}`;

/**
 * Builds a Llama graph in the layout of onnxruntime-genai's builder, onnx-community or Optimum.
 * @param dataFile name of the file for the weights; undefined = inside the graph
 */
export function llamaGraph(model: SyntheticModel, dataFile?: string): OnnxWriter {
  const builder = new LlamaBuilder(model, dataFile);
  builder.inputs();
  builder.tables();
  if (model.attention === 'merged') builder.merged();
  else builder.body('', true, true);
  return builder.writer;
}

/** Builds the separate embedding graph: ids to vectors. */
export function embedTokensGraph(model: SyntheticModel): OnnxWriter {
  const writer = new OnnxWriter();
  const { vocabulary, hidden } = model;
  writer.input('input_ids', 'int64', ['batch_size', 'sequence_length']);
  writer.output('inputs_embeds', 'float32', ['batch_size', 'sequence_length', hidden]);
  const weights = new SyntheticWeights(writer, model);
  weights.floats(EMBEDDING, [vocabulary, hidden], embedding(weights, model));
  writer.node('Gather', [EMBEDDING, 'input_ids'], ['inputs_embeds']);
  return writer;
}

/** The first that is drawn, wherever it is kept. */
const embedding = ({ random }: SyntheticWeights, { vocabulary, hidden }: SyntheticModel) =>
  random.normal(vocabulary * hidden, 1);

class LlamaBuilder {
  readonly writer: OnnxWriter;
  readonly #model: SyntheticModel;
  readonly #weights: SyntheticWeights;

  readonly #plain: PlainAttention;
  #frame: AttentionFrame | undefined;

  constructor(model: SyntheticModel, dataFile: string | undefined) {
    this.#model = model;
    this.writer = new OnnxWriter(dataFile);
    this.#weights = new SyntheticWeights(this.writer, model);
    this.#plain = new PlainAttention(this.writer, model, (...tensor) => this.#weights.floats(...tensor));
  }

  /** Embedding to logits, in the graph or in a branch of it. */
  body(scope: string, readsPast: boolean, causal: boolean): void {
    this.#weights.scope = scope;
    const { attention, layers } = this.#model;
    if (attention !== 'group-query') this.#frame = this.#plain.frame(scope, readsPast, causal);
    let residual =
      this.#model.embedding === 'outside'
        ? 'inputs_embeds'
        : this.writer.node('Gather', [EMBEDDING, 'input_ids'], [`${scope}embedded`]);
    let normed = this.firstNorm(residual);
    for (let layer = 0; layer < layers; layer++) {
      const attended = this.attention(layer, normed);
      const norm = `${layerName(layer)}.post_attention_layernorm`;
      [normed, residual] = this.addAndNorm(norm, residual, attended);
      const fed = this.feedForward(layer, normed);
      const next = layer + 1 < layers ? `${layerName(layer + 1)}.input_layernorm` : 'model.norm';
      [normed, residual] = this.addAndNorm(next, residual, fed);
    }
    this.head(normed);
  }

  /** Two bodies over the same weights. */
  merged(): void {
    const { layers, logits, precision, cachedBranch } = this.#model;
    this.writer.input('use_cache_branch', 'bool', [1]);
    const kv = Array.from({ length: layers }, (_, i) => [`present.${i}.key`, `present.${i}.value`]).flat();
    const branch = (scope: string, readsPast: boolean, causal: boolean) =>
      this.writer.branch(scope, () => {
        this.body(scope, readsPast, causal);
        return [
          { name: `${scope}logits`, type: logits },
          ...kv.map((name) => ({ name: `${scope}${name}`, type: precision })),
        ];
      });
    const then_branch = { graph: branch('cached/', true, cachedBranch === 'several-tokens') };
    const else_branch = { graph: branch('first/', false, true) };
    this.writer.node('If', ['use_cache_branch'], ['logits', ...kv], {
      attributes: { then_branch, else_branch },
    });
  }

  inputs(): void {
    const { layers, kvHeads, headSize, vocabulary, positionIds, logits, hidden, embedding } = this.#model;
    const kvType = this.#model.kv === 'as-precision' ? this.#model.precision : this.#model.kv;
    const lastDimension = this.#model.kvDimension === 'symbol' ? 'kv_cache_dim' : headSize;
    const lengths = this.#model.windowedCache ? 'sliding_length' : 'sequence_length';
    const sequence = ['batch_size', 'sequence_length'];
    if (embedding === 'inside') this.writer.input('input_ids', 'int64', sequence);
    else this.writer.input('inputs_embeds', 'float32', [...sequence, hidden]);
    this.writer.input('attention_mask', 'int64', ['batch_size', 'total_sequence_length']);
    const { logitsToKeep } = this.#model;
    if (logitsToKeep !== 'none')
      this.writer.input('num_logits_to_keep', 'int64', logitsToKeep === 'list' ? [1] : []);
    if (positionIds) this.writer.input('position_ids', 'int64', ['batch_size', 'sequence_length']);
    this.writer.output('logits', logits, ['batch_size', 'sequence_length', vocabulary]);
    for (let layer = 0; layer < layers; layer++) {
      for (const part of ['key', 'value']) {
        const past = ['batch_size', kvHeads, `past_${lengths}`, lastDimension];
        const present = ['batch_size', kvHeads, `total_${lengths}`, lastDimension];
        this.writer.input(`past_key_values.${layer}.${part}`, kvType, past);
        this.writer.output(`present.${layer}.${part}`, kvType, present);
      }
    }
  }

  /** Embedding and rotary tables. */
  tables(): void {
    const { vocabulary, hidden, contextLength, headSize, ropeTheta, shortRope, precision } = this.#model;
    const vectors = embedding(this.#weights, this.#model);
    if (this.#model.embedding === 'inside') this.#weights.floats(EMBEDDING, [vocabulary, hidden], vectors);
    if (this.#model.attention === 'group-query') this.#lengths();
    if (shortRope === 0) {
      this.#rotaryTables('', contextLength, ropeTheta);
      return;
    }
    this.#rotaryTables('_large', contextLength, ropeTheta * 4);
    this.#rotaryTables('_small', shortRope, ropeTheta);
    this.writer.node('Greater', ['mask_length', this.writer.integer('short', shortRope)], ['is_long']);
    const branch = (size: 'large' | 'small', positions: number) =>
      this.writer.branch(size, () =>
        ['cos', 'sin'].map((table) => {
          const name = this.writer.node('Identity', [`${table}_cache_${size}`], [`${size}/${table}`]);
          return { name, type: precision, dimensions: [positions, headSize / 2] };
        }),
      );
    const then_branch = { graph: branch('large', contextLength) };
    const else_branch = { graph: branch('small', shortRope) };
    this.writer.node('If', ['is_long'], ['cos_cache', 'sin_cache'], {
      attributes: { then_branch, else_branch },
    });
  }

  #rotaryTables(suffix: string, positions: number, theta: number): void {
    const { headSize } = this.#model;
    const half = headSize / 2;
    const cosines = new Float32Array(positions * half);
    const sines = new Float32Array(positions * half);
    for (let i = 0; i < cosines.length; i++) {
      const angle = Math.floor(i / half) * theta ** ((-2 * (i % half)) / headSize);
      cosines[i] = Math.cos(angle);
      sines[i] = Math.sin(angle);
    }
    this.#weights.floats(`cos_cache${suffix}`, [positions, half], cosines);
    this.#weights.floats(`sin_cache${suffix}`, [positions, half], sines);
  }

  /** The two inputs that GroupQueryAttention needs from the mask. */
  #lengths(): void {
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
      [`${this.#weights.scope}${layerName(0)}.input_layernorm.out`],
      { attributes: { epsilon: { float: this.#model.normEpsilon }, axis: { int: -1 } } },
    );
  }

  /** Returns the sum residual + delta and its norm. */
  addAndNorm(name: string, residual: string, delta: string): [normed: string, sum: string] {
    const sum = `${this.#weights.scope}${name}.sum`;
    const normed = this.writer.node(
      'SkipSimplifiedLayerNormalization',
      [residual, delta, this.#normWeight(name)],
      [`${this.#weights.scope}${name}.out`, '', '', sum],
      { domain: MICROSOFT, attributes: { epsilon: { float: this.#model.normEpsilon } } },
    );
    return [normed, sum];
  }

  attention(layer: number, input: string): string {
    const { hidden, heads, kvHeads, headSize, positionIds } = this.#model;
    const name = `${layerName(layer)}.attn`;
    const project = (part: string, columns: number) =>
      this.#weights.linear(`${name}.${part}`, input, hidden, columns);
    const [query, key, value] = this.#model.packed
      ? [project('qkv_proj', (heads + 2 * kvHeads) * headSize), '', '']
      : [
          project('q_proj', heads * headSize),
          project('k_proj', kvHeads * headSize),
          project('v_proj', kvHeads * headSize),
        ];
    if (this.#frame !== undefined) {
      const attended = this.#plain.attend(this.#frame, layer, query, key, value);
      return this.#weights.linear(`${name}.o_proj`, attended, heads * headSize, hidden);
    }
    const past = [`past_key_values.${layer}.key`, `past_key_values.${layer}.value`];
    const tables = [
      'seqlens_k',
      'total_length',
      'cos_cache',
      'sin_cache',
      positionIds ? 'position_ids' : '',
      ...this.#kvScales(),
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
          local_window_size: { int: this.#model.slidingWindow },
          ...(this.#model.windowedCache && { sliding_window_cache: { int: 1 } }),
          ...this.#kvQuantization(),
        },
      },
    );
    return this.#weights.linear(`${name}.o_proj`, attended, heads * headSize, hidden);
  }

  /** Inputs 10 to 13: no bias, no sinks, and the scales of keys and values. */
  #kvScales(): string[] {
    const { kv, kvHeads, headSize } = this.#model;
    const values = kvScales(this.#model);
    if (kv === 'as-precision') return [];
    const shape = values.length === 1 ? [1] : [1, kvHeads, 1, headSize];
    const scales = this.#weights.once('kv_scales', () =>
      this.writer.initializer('kv_scales', 'float32', shape, values),
    );
    return ['', '', scales, scales];
  }

  #kvQuantization(): Record<string, Attribute> {
    const { kv, kvScales: kind } = this.#model;
    if (kv === 'as-precision') return {};
    const string = kind === 'per-tensor' ? 'PER_TENSOR' : 'PER_CHANNEL';
    return { k_quant_type: { string }, v_quant_type: { string }, kv_cache_bit_width: { int: 8 } };
  }

  feedForward(layer: number, input: string): string {
    const { hidden, intermediate } = this.#model;
    const name = `${layerName(layer)}.mlp`;
    const [up, gate] = this.#upAndGate(name, input);
    const sigmoid = this.writer.node('Sigmoid', [gate], [`${this.#weights.scope}${name}.sigmoid`]);
    const silu = this.writer.node('Mul', [gate, sigmoid], [`${this.#weights.scope}${name}.silu`]);
    const gated = this.writer.node('Mul', [silu, up], [`${this.#weights.scope}${name}.gated`]);
    return this.#weights.linear(`${name}.down_proj`, gated, intermediate, hidden);
  }

  #upAndGate(name: string, input: string): [up: string, gate: string] {
    const { hidden, intermediate, joinsGate } = this.#model;
    const project = (part: string, columns: number) =>
      this.#weights.linear(`${name}.${part}`, input, hidden, columns);
    if (!joinsGate) {
      const gate = project('gate_proj', intermediate);
      return [project('up_proj', intermediate), gate];
    }
    const both = project('up_gate_proj', 2 * intermediate);
    const parts: [string, string] = [`${both}.up`, `${both}.gate`];
    this.writer.node('Split', [both], parts, { attributes: { axis: { int: -1 } } });
    return parts;
  }

  head(normed: string): void {
    const { hidden, vocabulary, precision, logits, logitsToKeep } = this.#model;
    const input = logitsToKeep === 'none' ? normed : this.#lastPositions(normed);
    const output = `${this.#weights.scope}logits`;
    if (this.#model.softCap > 0) {
      this.#cap(this.#weights.linear('lm_head', input, hidden, vocabulary), output);
      return;
    }
    if (precision === logits) {
      this.#weights.linear('lm_head', input, hidden, vocabulary, output);
      return;
    }
    const half = this.#weights.linear('lm_head', input, hidden, vocabulary);
    this.writer.node('Cast', [half], [output], { attributes: { to: { int: ElementType[logits] } } });
  }

  #lastPositions(normed: string): string {
    const writer = this.writer;
    const { scope } = this.#weights;
    const negative = writer.node('Neg', ['num_logits_to_keep'], [`${scope}negative_count`]);
    const start = writer.node(
      'Reshape',
      [negative, writer.integers('one_element', [1])],
      [`${scope}kept_start`],
    );
    const [end, axis] = [writer.integers('kept_end', [2 ** 31]), writer.integers('kept_axis', [1])];
    return writer.node('Slice', [normed, start, end, axis], [`${scope}last_positions`]);
  }

  #cap(logits: string, output: string): void {
    const { softCap, precision, vocabulary } = this.#model;
    const writer = this.writer;
    const cap = this.#weights.floats('soft_cap', [], Float32Array.of(softCap));
    const shares = writer.node('Div', [logits, cap], ['logits.shares']);
    const limited = writer.node('Tanh', [shares], ['logits.limited']);
    writer.node('Mul', [limited, cap], [output]);
    for (const name of [logits, shares, limited])
      writer.inner(name, precision, ['batch_size', 'sequence_length', vocabulary]);
  }

  #normWeight(name: string): string {
    const { hidden } = this.#model;
    return this.#weights.once(`${name}.weight`, () =>
      this.#weights.floats(`${name}.weight`, [hidden], this.#weights.random.normal(hidden, 0.1, 1)),
    );
  }
}
