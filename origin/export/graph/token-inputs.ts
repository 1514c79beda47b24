import type { DecoderDesign, TokenInputDesign } from '../design/decoder-design.ts';
import { gatherRows } from './embedding.ts';
import { writeActivation } from './feed-forward.ts';
import { type GraphContext, splitLast, writeLinear } from './linear.ts';
import { writeOptionalNorm } from './norms.ts';

/** Vectors of each token for every layer (Gemma 3n, Gemma 4). */

/** Returns the vector of each layer, [batch, sequence, width]. */
export function writeTokenInputs(
  context: GraphContext,
  { tokenInputs, layers, vocabulary, hidden }: DecoderDesign,
  ids: string,
  embedded: string,
): string[] {
  const { graph, type } = context;
  const { width, embedding, embeddingScale, projection, projectionScale, norm } = tokenInputs!;
  const all = layers.length * width;
  const count = tokenInputs!.vocabulary;
  const isKnown = (id: string) => graph.node('Less', [id, graph.integer(count)]);
  const inVocabulary = count < vocabulary ? graph.node('Where', [isKnown(ids), ids, graph.integer(0)]) : ids;
  const rows = graph.times(gatherRows(context, embedding, inVocabulary, count, all), embeddingScale, type);
  const projected = writeLinear(context, embedded, [projection], hidden, [all]);
  const shape = graph.integers(0, 0, layers.length, width);
  const split = graph.node('Reshape', [graph.times(projected, projectionScale, type), shape]);
  const normed = writeOptionalNorm(context, split, norm, width);
  const joined = graph.node('Reshape', [normed, graph.integers(0, 0, all)]);
  const sum = graph.times(graph.node('Add', [joined, rows]), Math.SQRT1_2, type);
  return splitLast(graph, sum, Array<number>(layers.length).fill(width));
}

/** Returns what a layer adds to the residual stream [batch, sequence, hidden]. */
export function writeTokenInput(
  context: GraphContext,
  { width, gate, activation, projection, norm }: TokenInputDesign,
  stream: string,
  vector: string,
  hidden: number,
): string {
  const gated = writeActivation(context, writeLinear(context, stream, [gate], hidden, [width]), activation);
  const product = context.graph.node('Mul', [gated, vector]);
  const projected = writeLinear(context, product, [projection], width, [hidden]);
  return writeOptionalNorm(context, projected, norm, hidden);
}
