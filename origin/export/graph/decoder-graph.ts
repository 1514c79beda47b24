import {
  DEFAULT_NAMES,
  LAST_POSITIONS,
  LOGITS_INDEX,
  TOTAL_LENGTH,
} from '@continuo/origin/model/config/decoder-names.ts';
import { ElementType } from '@continuo/origin/model/onnx/onnx-graph.ts';
import { type DecoderDesign, keepsCache, type LayerDesign } from '../design/decoder-design.ts';
import type { MlpAndExpertsDesign } from '../design/feed-forward-design.ts';
import type { MixerDesign, ParallelDesign } from '../design/mixer-design.ts';
import { writeAttention } from './attention.ts';
import { writeBlockBefore } from './block-before.ts';
import { writeConvolution } from './convolution.ts';
import { writeEmbedding, writeHead } from './embedding.ts';
import { writeExperts } from './experts.ts';
import { writeMlp } from './feed-forward.ts';
import { type GraphContext, vectorTensor, writeLinear } from './linear.ts';
import { writeLinearAttention } from './linear-attention.ts';
import { writeLinearRecurrence } from './linear-recurrence.ts';
import { type ResidualStream, writeOptionalNorm, writeSumAndNorm } from './norms.ts';
import { Positions } from './positions.ts';
import { writeStateSpace } from './state-space.ts';
import { writeAltUp, writeMeanOfStreams, writeStreams } from './streams.ts';
import { writeTokenInput, writeTokenInputs } from './token-inputs.ts';

/**
 * Writes a decoder as the runners want it: lengths instead of a mask, logits of the positions in
 * `logits_index` only, in float32. No patch of origin/model/foreign applies to it.
 * @throws ModelError that names a tensor which is missing or has another shape than config.json says
 */
export function writeDecoder(context: GraphContext, design: DecoderDesign): void {
  const { graph } = context;
  const { int64, int32, float32 } = ElementType;
  const ids = DEFAULT_NAMES.inputIds;
  graph.input({ name: ids, elementType: int64, dimensions: ['batch_size', 'sequence_length'] });
  graph.input({ name: LAST_POSITIONS, elementType: int32, dimensions: ['batch_size'] });
  graph.input({ name: TOTAL_LENGTH, elementType: int32, dimensions: [] });
  graph.input({ name: LOGITS_INDEX, elementType: int64, dimensions: ['logit_rows'] });
  const dimensions = ['logit_rows', design.vocabulary];
  graph.output({ name: DEFAULT_NAMES.logits, elementType: float32, dimensions });
  const positions = new Positions(context, design.maxPositions);
  const embedded = writeEmbedding(context, positions, design, ids);
  const tokenInputs = design.tokenInputs === null ? [] : writeTokenInputs(context, design, ids, embedded);
  const places = { positions, embedded };
  const { hidden, streams } = design;
  const first = streams === null ? embedded : writeStreams(context, streams, embedded, hidden);
  let [stream, mixers]: [ResidualStream, number] = [{ sum: first, branch: null }, 0];
  for (const [index, layer] of design.layers.entries()) {
    const place = keepsCache(layer) ? mixers : index;
    const vector = tokenInputs[index];
    const compute = (of: ResidualStream) => writeLayer(context, places, layer, place, of, hidden);
    stream =
      streams === null
        ? writeLayerEnd(context, layer, compute(stream), vector, hidden)
        : { sum: writeAltUp(context, design, layer, { streams: stream.sum, vector }, compute), branch: null };
    if (keepsCache(layer)) mixers += 1;
  }
  const { sum } = writeSumAndNorm(context, stream, null, hidden);
  const rows = graph.node('Reshape', [sum, graph.integers(-1, (streams?.count ?? 1) * hidden)]);
  const selected = graph.node('Gather', [rows, LOGITS_INDEX]);
  const result = streams === null ? selected : writeMeanOfStreams(context, streams, selected, hidden);
  const normed = writeOptionalNorm(context, result, design.finalNorm, hidden);
  writeHead(context, design, normed, DEFAULT_NAMES.logits);
}

/** What layers may read beside the residual stream. */
interface Places {
  readonly positions: Positions;
  /** [batch, sequence, hidden] */
  readonly embedded: string;
}

/**
 * Returns the residual stream after the layer.
 * @param index of its KV or state among those of all layers; of a layer without, among all layers
 */
function writeLayer(
  context: GraphContext,
  places: Places,
  layer: LayerDesign,
  index: number,
  stream: ResidualStream,
  hidden: number,
): ResidualStream {
  const norm = (input: string, of: LayerDesign['attentionNorm']) =>
    writeOptionalNorm(context, input, of, hidden);
  const { attention, feedForward } = layer;
  if (attention === null) {
    const { sum, normed } = writeSumAndNorm(context, stream, layer.feedForwardNorm, hidden);
    const fed = writeFeedForward(context, feedForward!, { sum, input: normed }, hidden);
    return { sum, branch: scaled(context, fed, layer) };
  }
  const before = writeSumAndNorm(context, stream, layer.attentionNorm, hidden);
  const mixed = writeMixer(context, places, attention, index, before.normed, hidden);
  const branch = scaled(context, norm(mixed, layer.attentionOutputNorm), layer);
  if (feedForward === null) return { sum: before.sum, branch };
  const middle = writeMiddle(context, layer, before, branch, hidden);
  const { sum } = middle;
  const fed = writeFeedForward(context, feedForward, middle, hidden);
  const result = scaled(context, norm(fed, layer.feedForwardOutputNorm), layer);
  if (layer.afterFeedForwardNorm === null) return { sum, branch: result };
  const after = writeSumAndNorm(context, { sum, branch: result }, layer.afterFeedForwardNorm, hidden);
  return { sum: after.normed, branch: null };
}

/** Adds what follows the feed-forward layer: the vector of each token, and the factor of the stream. */
function writeLayerEnd(
  context: GraphContext,
  { tokenInput, outputScale }: LayerDesign,
  stream: ResidualStream,
  vector: string | undefined,
  hidden: number,
): ResidualStream {
  if (tokenInput === null && outputScale === null) return stream;
  let { sum } = writeSumAndNorm(context, stream, null, hidden);
  if (tokenInput !== null)
    sum = context.graph.node('Add', [sum, writeTokenInput(context, tokenInput, sum, vector!, hidden)]);
  if (outputScale !== null) sum = context.graph.node('Mul', [sum, vectorTensor(context, outputScale, 1)]);
  return { sum, branch: null };
}

/** What a feed-forward layer reads: the residual stream, and its norm. */
interface FeedForwardInput {
  readonly sum: string;
  readonly input: string;
}

function writeFeedForward(
  context: GraphContext,
  design: NonNullable<LayerDesign['feedForward']>,
  { sum, input }: FeedForwardInput,
  hidden: number,
): string {
  if (design.kind === 'mlp') return writeMlp(context, design, input, hidden);
  if (design.kind === 'experts') return writeExperts(context, design, input, hidden);
  return writeMlpAndExperts(context, design, { sum, input }, hidden);
}

function writeMlpAndExperts(
  context: GraphContext,
  { mlp, mlpOutputNorm, experts, expertsNorm, expertsOutputNorm }: MlpAndExpertsDesign,
  { sum, input }: FeedForwardInput,
  hidden: number,
): string {
  const fed = writeMlp(context, mlp, input, hidden);
  const read = writeOptionalNorm(context, sum, expertsNorm, hidden);
  const chosen = writeExperts(context, experts, read, hidden, sum);
  return context.graph.node('Add', [
    writeOptionalNorm(context, fed, mlpOutputNorm, hidden),
    writeOptionalNorm(context, chosen, expertsOutputNorm, hidden),
  ]);
}

function writeMixer(
  context: GraphContext,
  { positions, embedded }: Places,
  mixer: MixerDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  switch (mixer.kind) {
    case 'attention':
      return writeAttention(context, positions, mixer, layer, input, hidden);
    case 'convolution':
      return writeConvolution(context, mixer, layer, input, hidden);
    case 'linear-attention':
      return writeLinearAttention(context, mixer, layer, input, hidden);
    case 'state-space':
      return writeStateSpace(context, mixer, layer, input, hidden);
    case 'parallel':
      return writeParallel(context, positions, mixer, layer, input, hidden);
    case 'linear-recurrence':
      return writeLinearRecurrence(context, positions, mixer, layer, input, hidden);
    case 'block-before':
      return writeBlockBefore(context, positions, mixer, layer, [input, embedded], hidden);
  }
}

function writeParallel(
  context: GraphContext,
  positions: Positions,
  { attention, inputFactor, outputFactor, stateSpace }: ParallelDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph, type } = context;
  const read = graph.times(input, inputFactor, type);
  const attended = writeAttention(context, positions, attention, layer, read, hidden);
  const recalled = writeStateSpace(context, stateSpace, layer, input, hidden);
  return graph.node('Add', [graph.times(attended, outputFactor, type), recalled]);
}

/** Returns the stream behind attention and what the feed-forward layer reads. */
function writeMiddle(
  context: GraphContext,
  layer: LayerDesign,
  before: { readonly sum: string; readonly normed: string },
  branch: string,
  hidden: number,
): FeedForwardInput {
  const { residual, feedForwardNorm, afterAttentionNorm } = layer;
  const stream = withLowRank(context, layer, before, branch, hidden);
  if (residual === 'sequential' && afterAttentionNorm === null) {
    const { sum, normed } = writeSumAndNorm(context, stream, feedForwardNorm, hidden);
    return { sum, input: normed };
  }
  const { normed: sum } = writeSumAndNorm(context, stream, afterAttentionNorm, hidden);
  if (residual === 'parallel-shared-norm') return { sum, input: before.normed };
  const read = residual === 'parallel' ? before.sum : sum;
  return { sum, input: writeOptionalNorm(context, read, feedForwardNorm, hidden) };
}

/** Adds the branch, and what is beside it. */
function withLowRank(
  context: GraphContext,
  { lowRank }: LayerDesign,
  before: { readonly sum: string; readonly normed: string },
  branch: string,
  hidden: number,
): ResidualStream {
  if (lowRank === null) return { sum: before.sum, branch };
  const { graph, type } = context;
  const { rank, down, up, norm } = lowRank;
  const narrow = writeLinear(context, before.normed, [down], hidden, [rank]);
  const learned = writeOptionalNorm(
    context,
    writeLinear(context, narrow, [up], rank, [hidden]),
    norm,
    hidden,
  );
  const beside = graph.node('Add', [before.normed, learned]);
  const sum = graph.node('Add', [graph.node('Add', [before.sum, branch]), beside]);
  return { sum: graph.times(sum, Math.SQRT1_2, type), branch: null };
}

const scaled = ({ graph, type }: GraphContext, input: string, { residualScale }: LayerDesign): string =>
  graph.times(input, residualScale, type);
