import { DEFAULT_NAMES, TOTAL_LENGTH } from '@continuo/origin/model/config/decoder-names.ts';
import { ElementType } from '@continuo/origin/model/onnx/onnx-graph.ts';
import type { AttentionDesign, RotaryDesign } from '../design/mixer-design.ts';
import { floatsOf } from './float-type.ts';
import { bytesOf, eachChunk, type GraphContext } from './linear.ts';

/** Cosines and sines of positions, distances for ALiBi, the positions: each added at first need. */
export class Positions {
  readonly #context: GraphContext;
  readonly #maxPositions: number;
  readonly #tables = new Map<string, string>();
  readonly #biases = new Map<string, string>();
  #hasInput = false;

  constructor(context: GraphContext, maxPositions: number) {
    this.#context = context;
    this.#maxPositions = maxPositions;
  }

  /** int64 [batch, sequence]: the position of each token. */
  ids(): string {
    const name = DEFAULT_NAMES.positionIds;
    if (!this.#hasInput) {
      const dimensions = ['batch_size', 'sequence_length'];
      this.#context.graph.input({ name, elementType: ElementType.int64, dimensions });
    }
    this.#hasInput = true;
    return name;
  }

  /** Cosines and sines [maxPositions, pairs]. */
  tables(rotary: RotaryDesign): readonly [cosines: string, sines: string] {
    const { frequencies, magnitude } = rotary;
    const key = JSON.stringify([frequencies, magnitude]);
    const id = this.#tables.get(key) ?? `rotary/${this.#tables.size}`;
    this.#tables.set(key, id);
    const { graph, type } = this.#context;
    const pairs = frequencies.length;
    const dimensions = [this.#maxPositions, pairs];
    const [cosines, sines] = graph.tensors(
      [
        { name: `${id}/cos`, type, dimensions },
        { name: `${id}/sin`, type, dimensions },
      ],
      (emit) =>
        eachChunk({ rows: this.#maxPositions, columns: pairs }, async (first, count) => {
          const angles = new Float32Array(count * pairs);
          // Models were trained with angles in single precision.
          for (let i = 0; i < angles.length; i++) {
            angles[i] = (first + Math.floor(i / pairs)) * frequencies[i % pairs]!;
          }
          for (const [index, of] of [Math.cos, Math.sin].entries()) {
            const values = angles.map((angle) => of(angle) * magnitude);
            await emit(index, bytesOf(floatsOf(type, values)));
          }
        }),
    );
    return [cosines!, sines!];
  }

  /** Factors of queries, [batch, sequence, 1]. */
  queryFactors(scaling: NonNullable<AttentionDesign['queryScaling']>): string {
    const { beta, originalPositions, first: offset } = scaling;
    const { graph, type } = this.#context;
    const rows = this.#maxPositions;
    const [factors] = graph.tensors([{ name: 'query-factors', type, dimensions: [rows, 1] }], (emit) =>
      eachChunk({ rows, columns: 1 }, async (first, count) => {
        const values = Float32Array.from(
          { length: count },
          (_, index) => 1 + beta * Math.log(1 + Math.floor((first + index + offset) / originalPositions)),
        );
        await emit(0, bytesOf(floatsOf(type, values)));
      }),
    );
    return graph.node('Gather', [factors!, this.ids()]);
  }

  /** ALiBi: −slope · distance for each head, [batch, heads, sequence, total length]. */
  biases(slopes: readonly number[]): string {
    const key = slopes.join();
    const written = this.#biases.get(key);
    if (written !== undefined) return written;
    const { graph, type } = this.#context;
    const zero = graph.constant('int32/0', 'int32', [], [0]);
    const step = graph.constant('int32/1', 'int32', [], [1]);
    const keys = graph.node('Range', [zero, TOTAL_LENGTH, step]);
    const queries = graph.node('Cast', [this.ids()], { integers: { to: ElementType.int32 } });
    const columns = graph.node('Unsqueeze', [queries, graph.integers(1, 3)]);
    const distances = graph.node('Cast', [graph.node('Sub', [keys, columns])], {
      integers: { to: ElementType[type] },
    });
    const scales = graph.constant(`slopes/${this.#biases.size}`, type, [1, slopes.length, 1, 1], slopes);
    const biases = graph.node('Mul', [distances, scales]);
    this.#biases.set(key, biases);
    return biases;
  }
}
