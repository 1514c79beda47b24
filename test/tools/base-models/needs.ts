import { servedConfig } from '../../../origin/export/build.ts';
import type { Matrix } from '../../../origin/export/checkpoint/matrix.ts';
import type { WeightSource } from '../../../origin/export/checkpoint/matrix-reader.ts';
import type { Weight } from '../../../origin/export/design/weight-design.ts';
import { describeFamily } from '../../../origin/export/families/families.ts';
import { writeDecoder } from '../../../origin/export/graph/decoder-graph.ts';
import { GraphBuilder } from '../../../origin/export/graph/graph-builder.ts';
import { DEFAULT_BLOCK_SIZE, nameOf } from '../../../origin/export/graph/linear.ts';
import { Quantizer } from '../../../origin/export/precision/quantize.ts';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { describeDecoder } from '../../../origin/model/decoder/decoder-interface.ts';
import { readGraph } from '../../../origin/model/onnx/onnx-graph.ts';
import { kvLayout } from '../../../origin/model/runner/kv-cache.ts';

/** What a model needs, told from its config.json: its graph is written, its weights are not read. */

export type Config = Readonly<Record<string, unknown>>;

export interface Needs {
  readonly parameters: number;
  /** Positions, at most `positions`, that the memory is for. */
  readonly positions: number;
  /** Weights, and the KV and states of one stream. */
  readonly bytes: number;
}

/** Has every tensor, in the shape that the graph needs. */
class AnyWeights implements WeightSource {
  readonly #sizes = new Map<string, number>();
  readonly #embeddingWidth: number;

  constructor(embeddingWidth: number) {
    this.#embeddingWidth = embeddingWidth;
  }

  get parameters(): number {
    return [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  open(weight: Weight, _: unknown, rows: number, columns: number): Matrix {
    this.#sizes.set(nameOf(weight), rows * columns);
    const readRows = async () => new Float32Array(0);
    return { name: nameOf(weight), rows, columns, blocks: null, readRows };
  }

  widthOf(): number {
    return this.#embeddingWidth;
  }
}

/**
 * @param positions of the stream; fewer if the model has fewer
 * @throws ModelError as the builder
 */
export function needsOf(config: Config, precision: 'int8' | 'int4', positions: number): Needs {
  const { design, modelType } = describeFamily(config, new Set());
  const graph = new GraphBuilder('model.onnx.data');
  const weights = new AnyWeights(Number(config.word_embed_proj_dim ?? design.hidden));
  const options = { precision, blockSize: DEFAULT_BLOCK_SIZE, type: 'float32' } as const;
  writeDecoder({ graph, weights, quantizer: new Quantizer(), ...options }, design);
  const model = graph.encode(modelType);
  const texts = { 'config.json': JSON.stringify(servedConfig(config, design)) };
  const read = (file: string) => texts[file as keyof typeof texts];
  const decoder = describeDecoder(readGraph(model), readModelConfig({ directory: modelType, read }));
  const used = Math.min(positions, decoder.maxPositions);
  const layout = kvLayout(decoder, 1, used);
  return {
    parameters: weights.parameters,
    positions: used,
    bytes: model.length + graph.dataBytes + layout.totalBytes,
  };
}
