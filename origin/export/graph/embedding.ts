import { ElementType } from '@continuo/origin/model/onnx/onnx-graph.ts';
import type { DecoderDesign } from '../design/decoder-design.ts';
import type { Weight } from '../design/weight-design.ts';
import {
  blockFormat,
  blockTensors,
  floatTensor,
  type GraphContext,
  inEightBits,
  nameOf,
  writeLinear,
  writeMatMul,
} from './linear.ts';
import { writeOptionalNorm } from './norms.ts';
import type { Positions } from './positions.ts';

/** Writes the vectors [batch, sequence, hidden] of the tokens. */
export function writeEmbedding(
  context: GraphContext,
  positions: Positions,
  design: DecoderDesign,
  ids: string,
): string {
  const { graph, type } = context;
  const { hidden, embeddingScale, embeddingProjection, learnedPositions } = design;
  const width = embeddingWidth(context, design);
  let vectors = gatherRows(context, design.embedding, ids, design.vocabulary, width);
  if (embeddingScale !== 1) vectors = graph.node('Mul', [vectors, graph.scalar(embeddingScale, type)]);
  if (embeddingProjection !== null) {
    vectors = writeLinear(context, vectors, [embeddingProjection.into], width, [hidden]);
  }
  if (learnedPositions !== null) {
    const { weight, offset } = learnedPositions;
    const table = context.weights.open(weight, 'matrix', design.maxPositions + offset, hidden);
    const rows = floatTensor(context, nameOf(weight), table, [table.rows, hidden]);
    const index = graph.node('Add', [positions.ids(), graph.integer(offset)]);
    vectors = graph.node('Add', [vectors, graph.node('Gather', [rows, index])]);
  }
  return writeOptionalNorm(context, vectors, design.embeddingNorm, hidden);
}

/** The embedding's width is hidden unless it is projected. */
function embeddingWidth({ weights }: GraphContext, design: DecoderDesign): number {
  if (design.embeddingProjection === null) return design.hidden;
  return weights.widthOf(design.embedding);
}

/** Writes the rows [batch, sequence, width] of a table. */
export function gatherRows(
  context: GraphContext,
  table: Weight,
  ids: string,
  count: number,
  width: number,
): string {
  const { graph } = context;
  const matrix = context.weights.open(table, 'matrix', count, width);
  const name = nameOf(table);
  const format = blockFormat(inEightBits(context), matrix);
  // GatherBlockQuantized reads rows of exactly `width` values, MatMulNBits rows of whole blocks.
  if (format === null || width % format.blockSize !== 0) {
    return graph.node('Gather', [floatTensor(context, name, matrix, [count, width]), ids]);
  }
  const [levels, scales] = blockTensors(context, name, matrix, format);
  const dimensions = [count, (width * format.bits) / 8];
  const rows = graph.alias({ name: `${levels}/rows`, type: 'uint8', dimensions }, levels);
  return graph.node('GatherBlockQuantized', [rows, ids, scales], {
    microsoft: true,
    integers: {
      gather_axis: 0,
      quantize_axis: 1,
      block_size: format.blockSize,
      bits: format.bits,
    },
  });
}

/** Writes the logits [logit_rows, vocabulary] in float32 from [logit_rows, hidden] to the output `name`. */
export function writeHead(
  context: GraphContext,
  design: DecoderDesign,
  selected: string,
  name: string,
): void {
  const { graph, type, weights } = context;
  const { hidden, vocabulary, head, embeddingProjection, logitScale, logitSoftCap } = design;
  const width = embeddingWidth(context, design);
  const input =
    embeddingProjection === null
      ? selected
      : writeLinear(context, selected, [embeddingProjection.outOf], hidden, [width]);
  const matrix = weights.open(head.weight, 'matrix', vocabulary, width);
  const bias =
    head.bias === null
      ? null
      : floatTensor(context, nameOf(head.bias), weights.open(head.bias, 'vector', vocabulary, 1), [
          vocabulary,
        ]);
  let logits = writeMatMul(inEightBits(context), input, nameOf(head.weight), matrix, bias);
  if (type !== 'float32') logits = graph.node('Cast', [logits], { integers: { to: ElementType.float32 } });
  const scalar = (value: number) => graph.scalar(value, 'float32');
  if (logitScale !== 1) logits = graph.node('Mul', [logits, scalar(logitScale)]);
  if (logitSoftCap !== null) {
    const limited = graph.node('Tanh', [graph.node('Div', [logits, scalar(logitSoftCap)])]);
    logits = graph.node('Mul', [limited, scalar(logitSoftCap)]);
  }
  graph.node('Identity', [logits], { outputs: [name] });
}
