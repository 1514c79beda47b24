import type { SyntheticModel } from './llama-graph.ts';
import type { OnnxWriter } from './onnx-writer.ts';

/**
 * Attention in standard ONNX operators, as Optimum exports it. The past is concatenated with the new keys and
 * values, the mask is explicit, and key-value heads are repeated for the query heads that share them.
 */

/** Values that all layers of one graph or branch share. */
export interface AttentionFrame {
  /** Prefix of output names, so that the names of two branches differ. */
  readonly scope: string;
  readonly readsPast: boolean;
  /** Additive mask [batch, 1, sequence, total]. */
  readonly mask: string;
  /** [batch, 1, sequence, headSize / 2] */
  readonly cosines: string;
  readonly sines: string;
}

type Floats = (name: string, dimensions: readonly number[], values: Float32Array) => string;

export class PlainAttention {
  readonly #writer: OnnxWriter;
  readonly #model: SyntheticModel;
  readonly #floats: Floats;

  constructor(writer: OnnxWriter, model: SyntheticModel, floats: Floats) {
    this.#writer = writer;
    this.#model = model;
    this.#floats = floats;
  }

  /** @param causal false = without a mask among new tokens, as traced with one token per run */
  frame(scope: string, readsPast: boolean, causal: boolean): AttentionFrame {
    const writer = this.#writer;
    const positions = this.#model.positionIds ? 'position_ids' : this.#countedPositions(scope);
    const kept = writer.node('Cast', ['attention_mask'], [`${scope}kept`], {
      attributes: { to: { int: 9 } },
    });
    let allowed = this.#unsqueeze(kept, [1, 2], `${scope}allowed_keys`);
    if (causal) allowed = writer.node('And', [allowed, this.#past(scope, positions)], [`${scope}allowed`]);
    const none = this.#floats('zero_bias', [], Float32Array.of(0));
    const barred = this.#floats('barred_bias', [], Float32Array.of(-60_000));
    return {
      scope,
      readsPast,
      mask: writer.node('Where', [allowed, none, barred], [`${scope}mask`]),
      cosines: this.#table('cos_cache', positions, scope),
      sines: this.#table('sin_cache', positions, scope),
    };
  }

  /** [batch, sequence, heads · headSize] from projections of the same shape. */
  attend(frame: AttentionFrame, layer: number, query: string, key: string, value: string): string {
    const { heads, kvHeads, headSize } = this.#model;
    const writer = this.#writer;
    const name = (part: string) => `${frame.scope}attention.${layer}.${part}`;
    const queries = this.#rotate(frame, this.#split(query, heads, name('queries')), name('queries'));
    const rotated = this.#rotate(frame, this.#split(key, kvHeads, name('keys')), name('keys'));
    const keys = this.#present(frame, layer, 'key', rotated);
    const values = this.#present(frame, layer, 'value', this.#split(value, kvHeads, name('values')));
    const across = writer.node('Transpose', [this.#repeat(keys, name('all_keys'))], [name('across')], {
      attributes: { perm: { ints: [0, 1, 3, 2] } },
    });
    const scale = this.#floats('attention_scale', [], Float32Array.of(1 / Math.sqrt(headSize)));
    const products = writer.node('MatMul', [queries, across], [name('products')]);
    const scaled = writer.node('Mul', [products, scale], [name('scaled')]);
    const scores = writer.node('Add', [scaled, frame.mask], [name('scores')]);
    const weights = writer.node('Softmax', [scores], [name('weights')], {
      attributes: { axis: { int: -1 } },
    });
    const read = writer.node('MatMul', [weights, this.#repeat(values, name('all_values'))], [name('read')]);
    const rows = writer.node('Transpose', [read], [name('rows')], {
      attributes: { perm: { ints: [0, 2, 1, 3] } },
    });
    const joined = writer.integers('joined_shape', [0, 0, heads * headSize]);
    return writer.node('Reshape', [rows, joined], [name('joined')]);
  }

  /** Positions as OPT's export counts them: ones in the mask up to each of the last `sequence` columns. */
  #countedPositions(scope: string): string {
    const writer = this.#writer;
    const axis = writer.integer('mask_axis', 1);
    const counted = writer.node('CumSum', ['attention_mask', axis], [`${scope}counted`]);
    const all = writer.node('Sub', [counted, writer.integer('one_position', 1)], [`${scope}all_positions`]);
    const shape = writer.node('Shape', ['input_ids'], [`${scope}ids_shape`]);
    const length = writer.node(
      'Gather',
      [shape, writer.integers('second_dimension', [1])],
      [`${scope}length`],
    );
    const start = writer.node('Neg', [length], [`${scope}start`]);
    const end = writer.integers('last_position', [2 ** 31]);
    return writer.node('Slice', [all, start, end, writer.integers('slice_axis', [1])], [`${scope}positions`]);
  }

  /** [batch, 1, sequence, total]: keys up to each query's own position. */
  #past(scope: string, positions: string): string {
    const writer = this.#writer;
    const shape = writer.node('Shape', ['attention_mask'], [`${scope}mask_shape`]);
    const total = writer.node('Gather', [shape, writer.integer('total_dimension', 1)], [`${scope}total`]);
    const [zero, step] = [writer.integer('range_start', 0), writer.integer('range_step', 1)];
    const keys = writer.node('Range', [zero, total, step], [`${scope}key_positions`]);
    const ends = this.#unsqueeze(positions, [1, 3], `${scope}query_positions`);
    const causal = writer.node('LessOrEqual', [keys, ends], [`${scope}causal`]);
    const { slidingWindow } = this.#model;
    if (slidingWindow < 0) return causal;
    const start = writer.node(
      'Sub',
      [ends, writer.integer('window', slidingWindow)],
      [`${scope}window_start`],
    );
    const near = writer.node('Greater', [keys, start], [`${scope}near`]);
    return writer.node('And', [causal, near], [`${scope}causal_and_near`]);
  }

  #table(table: string, positions: string, scope: string): string {
    const rows = this.#writer.node('Gather', [table, positions], [`${scope}${table}.rows`]);
    return this.#unsqueeze(rows, [1], `${scope}${table}.angles`);
  }

  #unsqueeze(input: string, axes: readonly number[], output: string): string {
    return this.#writer.node(
      'Unsqueeze',
      [input, this.#writer.integers(`axes_${axes.join('_')}`, axes)],
      [output],
    );
  }

  /** [batch, heads, sequence, headSize] */
  #split(input: string, heads: number, name: string): string {
    const shape = this.#writer.integers(`split_${heads}`, [0, 0, heads, this.#model.headSize]);
    const split = this.#writer.node('Reshape', [input, shape], [`${name}.split`]);
    return this.#writer.node('Transpose', [split], [`${name}.by_head`], {
      attributes: { perm: { ints: [0, 2, 1, 3] } },
    });
  }

  #rotate({ cosines, sines }: AttentionFrame, input: string, name: string): string {
    const writer = this.#writer;
    const [first, second] = [`${name}.first`, `${name}.second`] as const;
    writer.node('Split', [input], [first, second], { attributes: { axis: { int: -1 } } });
    const product = (half: string, table: string, part: string) =>
      writer.node('Mul', [half, table], [`${name}.${part}`]);
    const left = [product(first, cosines, 'fc'), product(second, sines, 'ss')];
    const right = [product(second, cosines, 'sc'), product(first, sines, 'fs')];
    const turned = [
      writer.node('Sub', left, [`${name}.turned_first`]),
      writer.node('Add', right, [`${name}.turned_second`]),
    ];
    return writer.node('Concat', turned, [`${name}.turned`], { attributes: { axis: { int: -1 } } });
  }

  #present({ scope, readsPast }: AttentionFrame, layer: number, part: string, added: string): string {
    const output = `${scope}present.${layer}.${part}`;
    if (!readsPast) return this.#writer.node('Identity', [added], [output]);
    return this.#writer.node('Concat', [`past_key_values.${layer}.${part}`, added], [output], {
      attributes: { axis: { int: 2 } },
    });
  }

  /** Each key-value head once for every query head that reads it. */
  #repeat(input: string, output: string): string {
    const { heads, kvHeads } = this.#model;
    const source = Array.from({ length: heads }, (_, head) => Math.floor((head * kvHeads) / heads));
    const index = this.#writer.integers('head_of_query', source);
    return this.#writer.node('Gather', [input, index], [output], { attributes: { axis: { int: 1 } } });
  }
}
