import type { AltUpDesign, DecoderDesign, LayerDesign, StreamsDesign } from '../design/decoder-design.ts';
import type { ProjectionDesign } from '../design/weight-design.ts';
import { requireHalfOrSingle } from './float-type.ts';
import { floatTensor, type GraphContext, nameOf, splitLast, vectorTensor, writeLinear } from './linear.ts';
import { type ResidualStream, writeMagnitude, writeOptionalNorm, writeSumAndNorm } from './norms.ts';
import { writeTokenInput } from './token-inputs.ts';

/** Several residual streams in one tensor [batch, sequence, streams, hidden], of which layers compute one. */

/** Smallest root mean square that a stream is divided by. */
const MIN_MAGNITUDE = Math.sqrt(1e-5);

/** Writes the streams from the embedding [batch, sequence, hidden]. */
export function writeStreams(
  context: GraphContext,
  { count, into }: StreamsDesign,
  embedded: string,
  hidden: number,
): string {
  const { graph, type } = context;
  requireHalfOrSingle(type, 'several residual streams');
  const sizes = Array<number>(count - 1).fill(hidden);
  const projected = writeLinear(context, embedded, into, hidden, sizes);
  const split = graph.node('Reshape', [projected, graph.integers(0, 0, count - 1, hidden)]);
  const first = graph.node('Unsqueeze', [embedded, graph.integers(2)]);
  const others = resized(context, split, writeMagnitude(context, first, hidden), hidden);
  return graph.node('Concat', [first, others], { integers: { axis: 2 } });
}

/** Writes the mean [rows, hidden] of the streams [rows, streams · hidden]. */
export function writeMeanOfStreams(
  context: GraphContext,
  { count, outOf }: StreamsDesign,
  streams: string,
  hidden: number,
): string {
  const { graph, type } = context;
  const [first = '', ...others] = splitLast(graph, streams, Array<number>(count).fill(hidden));
  const magnitude = writeMagnitude(context, first, hidden);
  const sum = others.reduce((total, stream, index) => {
    const projected = writeLinear(context, stream, [outOf[index]!], hidden, [hidden]);
    return graph.node('Add', [total, resized(context, projected, magnitude, hidden)]);
  }, first);
  return graph.times(sum, 1 / count, type);
}

/** Scales vectors to a magnitude. */
function resized(context: GraphContext, input: string, magnitude: string, hidden: number): string {
  const { graph, type } = context;
  const current = writeMagnitude(context, input, hidden);
  const divisor = graph.node('Max', [current, graph.scalar(MIN_MAGNITUDE, type)]);
  return graph.node('Div', [graph.node('Mul', [input, magnitude]), divisor]);
}

/**
 * Returns the streams after a layer.
 * @param vector what the layer has of each token
 * @param compute writes the layer's attention and feed-forward layer
 */
export function writeAltUp(
  context: GraphContext,
  { streams: described, hidden }: DecoderDesign,
  { tokenInput, ...layer }: LayerDesign,
  { streams, vector }: { readonly streams: string; readonly vector: string | undefined },
  compute: (stream: ResidualStream) => ResidualStream,
): string {
  const { graph, type } = context;
  const { count, active } = described!;
  const altUp = layer.altUp!;
  const activeOf = (all: string) =>
    graph.node('Gather', [all, graph.integer(active)], { integers: { axis: 2 } });
  const predicted = predict(context, altUp, streams, activeOf(streams), { count, hidden });
  const before = activeOf(predicted);
  const { sum } = writeSumAndNorm(context, compute({ sum: before, branch: null }), null, hidden);
  const routed = route(context, altUp, sum, { count, hidden });
  const correction = multiplyEach(context, altUp.correction, routed, count, count);
  const shares = graph.node('Add', [correction, graph.scalar(1, type)]);
  const toAll = (stream: string) => graph.node('Unsqueeze', [stream, graph.integers(2)]);
  const change = graph.node('Mul', [toAll(graph.node('Sub', [sum, before])), shares]);
  const corrected = graph.node('Add', [predicted, change]);
  if (tokenInput === null) return corrected;
  const read = scaledBy(context, activeOf(corrected), altUp.tokenInputScale, hidden);
  const added = writeTokenInput(context, tokenInput, read, vector!, hidden);
  const others = Array.from({ length: count }, (_, stream) => (stream === 0 ? 0 : 1));
  const mask = graph.constant(`streams/${count}`, type, [count, 1], others);
  return graph.node('Add', [corrected, graph.node('Mul', [toAll(added), mask])]);
}

interface Sizes {
  readonly count: number;
  readonly hidden: number;
}

function predict(
  context: GraphContext,
  altUp: AltUpDesign,
  streams: string,
  active: string,
  { count, hidden }: Sizes,
): string {
  const { graph } = context;
  const routed = route(context, altUp, active, { count, hidden });
  const mixture = multiplyEach(context, altUp.prediction, routed, count, count * count);
  const matrices = graph.node('Reshape', [mixture, graph.integers(0, 0, count, count)]);
  return graph.node('Add', [streams, graph.node('MatMul', [matrices, streams])]);
}

/** Writes the shares [batch, sequence, streams, 1] in (−1, 1) of a stream [batch, sequence, hidden]. */
function route(
  context: GraphContext,
  { norm, router }: AltUpDesign,
  stream: string,
  { count, hidden }: Sizes,
): string {
  const { graph } = context;
  const normed = writeOptionalNorm(context, stream, norm, hidden);
  const columns = graph.node('Unsqueeze', [normed, graph.integers(3)]);
  return graph.node('Tanh', [multiplyEach(context, router, columns, hidden, count)]);
}

/**
 * Multiplies a small matrix that is not quantized by vectors [batch, sequence, inputs, 1]. Each is a product
 * of its own, so it rounds the same alone and with others.
 */
function multiplyEach(
  context: GraphContext,
  { weight }: ProjectionDesign,
  vectors: string,
  inputs: number,
  outputs: number,
): string {
  const matrix = context.weights.open(weight, 'matrix', outputs, inputs);
  const tensor = floatTensor(context, nameOf(weight), matrix, [outputs, inputs]);
  return context.graph.node('MatMul', [tensor, vectors]);
}

function scaledBy(
  context: GraphContext,
  input: string,
  factor: AltUpDesign['tokenInputScale'],
  hidden: number,
): string {
  if (factor === null) return input;
  return context.graph.node('Mul', [input, vectorTensor(context, factor, hidden)]);
}
