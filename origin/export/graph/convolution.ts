import type { ConvolutionDesign } from '../design/mixer-design.ts';
import { type GraphContext, splitLast, writeLinear } from './linear.ts';
import { inSingle, inType, writeCausalConvolution } from './states.ts';

/** Writes the gated convolution of one layer over [batch, sequence, hidden]. */
export function writeConvolution(
  context: GraphContext,
  design: ConvolutionDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph } = context;
  const projected = writeLinear(context, input, [design.input], hidden, [3 * hidden]);
  const [before, after, values] = splitLast(graph, projected, [hidden, hidden, hidden]);
  const product = inSingle(context, graph.node('Mul', [before!, values!]));
  const convolved = writeCausalConvolution(context, design.kernel, layer, product, hidden, 'none');
  const gated = graph.node('Mul', [after!, inType(context, convolved)]);
  return writeLinear(context, gated, [design.output], hidden, [hidden]);
}
