import type { HeadNormDesign } from '../design/mixer-design.ts';
import type { NormDesign } from '../design/weight-design.ts';
import { type GraphContext, vectorTensor } from './linear.ts';
import { inType } from './states.ts';

function writeGain(context: GraphContext, norm: NormDesign, width: number): string {
  const { graph, type } = context;
  const { weight, weightOffset, factor = 1 } = norm;
  if (weight !== null) return vectorTensor(context, weight, width, weightOffset, factor);
  return graph.constant(`gain/${width}/${factor}`, type, [width], Array<number>(width).fill(factor));
}

const writeNormBias = (context: GraphContext, { bias, factor = 1 }: NormDesign, width: number) =>
  bias === null ? null : vectorTensor(context, bias, width, 0, factor);

/** Normalizes the last dimension of `input`, which has `width` values. */
function writeNorm(context: GraphContext, input: string, norm: NormDesign, width: number): string {
  const { graph } = context;
  const weight = writeGain(context, norm, width);
  const options = { integers: { axis: -1 }, floats: { epsilon: norm.epsilon } };
  const bias = writeNormBias(context, norm, width);
  if (norm.kind === 'layer') {
    return graph.node('LayerNormalization', [input, weight, ...(bias === null ? [] : [bias])], options);
  }
  const normed = graph.node('SimplifiedLayerNormalization', [input, weight], options);
  return bias === null ? normed : graph.node('Add', [normed, bias]);
}

export function writeOptionalNorm(
  context: GraphContext,
  input: string,
  norm: NormDesign | null,
  width: number,
): string {
  return norm === null ? input : writeNorm(context, input, norm, width);
}

/** Smaller than the rounding of any mean square, so it only keeps 0 from having an infinite inverse. */
const TINY = 1e-30;

/**
 * The root mean square of the last dimension, [.., 1]. Reductions of ONNX Runtime round by the place in
 * memory, its norms do not.
 */
export function writeMagnitude(context: GraphContext, input: string, width: number): string {
  const inverse = writeStatistic(context, 'SimplifiedLayerNormalization', input, width);
  return inType(context, context.graph.node('Reciprocal', [inverse]));
}

/** The mean of the last dimension, [.., 1]. */
export const writeMean = (context: GraphContext, input: string, width: number): string =>
  inType(context, writeStatistic(context, 'LayerNormalization', input, width));

/** The second output of a norm, in float32: of LayerNormalization the mean, else the inverse magnitude. */
function writeStatistic({ graph, type }: GraphContext, norm: string, input: string, width: number): string {
  const gain = graph.constant(`gain/${width}/1`, type, [width], Array<number>(width).fill(1));
  const outputs = [graph.newName('normed'), graph.newName('statistic')];
  graph.node(norm, [input, gain], { outputs, integers: { axis: -1 }, floats: { epsilon: TINY } });
  return outputs[1]!;
}

/** The residual stream: `sum`, to which `branch` is still to be added. */
export interface ResidualStream {
  readonly sum: string;
  readonly branch: string | null;
}

/** Adds the branch and normalizes the sum. One operator does both if the norm is RMS without a bias. */
export function writeSumAndNorm(
  context: GraphContext,
  { sum, branch }: ResidualStream,
  norm: NormDesign | null,
  width: number,
): { readonly sum: string; readonly normed: string } {
  const { graph } = context;
  if (branch === null) return { sum, normed: writeOptionalNorm(context, sum, norm, width) };
  if (norm === null || norm.kind === 'layer' || norm.bias !== null) {
    const added = graph.node('Add', [sum, branch]);
    return { sum: added, normed: writeOptionalNorm(context, added, norm, width) };
  }
  const [normed, added] = [graph.newName('normed'), graph.newName('sum')];
  graph.node('SkipSimplifiedLayerNormalization', [sum, branch, writeGain(context, norm, width)], {
    microsoft: true,
    outputs: [normed, '', '', added],
    floats: { epsilon: norm.epsilon },
  });
  return { sum: added, normed };
}

/** Normalizes queries or keys [batch, sequence, heads · headSize]. */
export function writeHeadNorm(
  context: GraphContext,
  input: string,
  norm: HeadNormDesign,
  heads: number,
  headSize: number,
): string {
  const { graph } = context;
  if (norm.over === 'width') return writeNorm(context, input, norm, heads * headSize);
  const split = graph.node('Reshape', [input, graph.integers(0, 0, heads, headSize)]);
  const normed =
    norm.over === 'head'
      ? writeNorm(context, split, norm, headSize)
      : writeNorm(context, split, { ...norm, weight: null, bias: null, factor: 1 }, headSize);
  const joined = graph.node('Reshape', [normed, graph.integers(0, 0, heads * headSize)]);
  if (norm.over === 'head') return joined;
  const width = heads * headSize;
  const hasGain = norm.weight !== null || (norm.factor ?? 1) !== 1;
  const scaled = hasGain ? graph.node('Mul', [joined, writeGain(context, norm, width)]) : joined;
  const bias = writeNormBias(context, norm, width);
  return bias === null ? scaled : graph.node('Add', [scaled, bias]);
}
