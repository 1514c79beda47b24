import {
  DEFAULT_NAMES,
  LAST_POSITIONS,
  LOGITS_INDEX,
  TOTAL_LENGTH,
} from '@continuo/origin/model/config/decoder-names.ts';
import type { DecoderDesign, LayerDesign } from '../families/decoder-design.ts';
import { writeAttention } from './attention.ts';
import { writeEmbedding, writeHead } from './embedding.ts';
import { writeExperts } from './experts.ts';
import { writeMlp } from './feed-forward.ts';
import { WeightType } from './graph-builder.ts';
import type { GraphContext } from './linear.ts';
import { writeOptionalNorm } from './norms.ts';
import { Positions } from './positions.ts';

/**
 * Writes a decoder as the runners want it: lengths instead of a mask, logits of the positions in
 * `logits_index` only, in float32. No patch of origin/model/foreign applies to it.
 * @throws ModelError that names a tensor which is missing or has another shape than config.json says
 */
export function writeDecoder(context: GraphContext, design: DecoderDesign): void {
  const { graph } = context;
  const { int64, int32, float32 } = WeightType;
  const ids = DEFAULT_NAMES.inputIds;
  graph.input({ name: ids, elementType: int64, dimensions: ['batch_size', 'sequence_length'] });
  graph.input({ name: LAST_POSITIONS, elementType: int32, dimensions: ['batch_size'] });
  graph.input({ name: TOTAL_LENGTH, elementType: int32, dimensions: [] });
  graph.input({ name: LOGITS_INDEX, elementType: int64, dimensions: ['logit_rows'] });
  const dimensions = ['logit_rows', design.vocabulary];
  graph.output({ name: DEFAULT_NAMES.logits, elementType: float32, dimensions });
  const positions = new Positions(context, design.maxPositions);
  const last = design.layers.reduce(
    (stream, layer, index) => writeLayer(context, positions, layer, index, stream, design.hidden),
    writeEmbedding(context, positions, design, ids),
  );
  const rows = graph.node('Reshape', [last, graph.integers(-1, design.hidden)]);
  const selected = graph.node('Gather', [rows, LOGITS_INDEX]);
  const normed = writeOptionalNorm(context, selected, design.finalNorm, design.hidden);
  writeHead(context, design, normed, DEFAULT_NAMES.logits);
}

/** Returns the residual stream after the layer. */
function writeLayer(
  context: GraphContext,
  positions: Positions,
  layer: LayerDesign,
  index: number,
  stream: string,
  hidden: number,
): string {
  const { graph } = context;
  const norm = (input: string, of: LayerDesign['attentionNorm']) =>
    writeOptionalNorm(context, input, of, hidden);
  const attended = norm(stream, layer.attentionNorm);
  const attention = writeAttention(context, positions, layer.attention, index, attended, hidden);
  const attentionResult = scaled(context, norm(attention, layer.attentionOutputNorm), layer);
  const sum = graph.node('Add', [stream, attentionResult]);
  const middle = norm(sum, layer.afterAttentionNorm);
  const input = {
    sequential: () => norm(middle, layer.feedForwardNorm),
    parallel: () => norm(stream, layer.feedForwardNorm),
    'parallel-shared-norm': () => attended,
  }[layer.residual]();
  const { feedForward } = layer;
  const fed =
    feedForward.kind === 'mlp'
      ? writeMlp(context, feedForward, input, hidden)
      : writeExperts(context, feedForward, input, hidden);
  const result = scaled(context, norm(fed, layer.feedForwardOutputNorm), layer);
  return norm(graph.node('Add', [middle, result]), layer.afterFeedForwardNorm);
}

function scaled({ graph, type }: GraphContext, input: string, { residualScale }: LayerDesign): string {
  return residualScale === 1 ? input : graph.node('Mul', [input, graph.scalar(residualScale, type)]);
}
