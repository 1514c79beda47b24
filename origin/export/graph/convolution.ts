import {
  layerName,
  PAST_CONVOLUTION,
  PRESENT_CONVOLUTION,
} from '@continuo/origin/model/config/decoder-names.ts';
import type { ConvolutionDesign } from '../families/decoder-design.ts';
import { WeightType } from './graph-builder.ts';
import { floatTensor, type GraphContext, nameOf, trimmed, vectorTensor, writeLinear } from './linear.ts';

/**
 * Writes the gated convolution of one layer over [batch, sequence, hidden]. Its window is in float32, like
 * all states.
 */
export function writeConvolution(
  context: GraphContext,
  design: ConvolutionDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph, weights } = context;
  const single = { graph, type: 'float32' as const };
  const { kernel, length } = design;
  const projected = writeLinear(context, input, [design.input], hidden, [3 * hidden]);
  const [before, after, values] = split(context, projected, hidden);
  const channelsFirst = { integerLists: { perm: [0, 2, 1] } };
  const product = graph.node('Transpose', [graph.node('Mul', [before!, values!])], channelsFirst);
  const window = ['batch_size', hidden, length - 1];
  const [past, present] = [layerName(PAST_CONVOLUTION, layer), layerName(PRESENT_CONVOLUTION, layer)];
  graph.input({ name: past, elementType: WeightType.float32, dimensions: window });
  graph.output({ name: present, elementType: WeightType.float32, dimensions: window });
  const matrix = weights.open(kernel.weight, 'matrix', hidden, length);
  const taps = floatTensor(single, nameOf(kernel.weight), matrix, [hidden, 1, length]);
  const bias = kernel.bias === null ? '' : vectorTensor({ ...context, type: 'float32' }, kernel.bias, hidden);
  const convolved = graph.node(
    'CausalConvWithState',
    trimmed([inSingle(context, product), taps, bias, past]),
    {
      microsoft: true,
      outputs: [graph.newName('convolved'), present],
      integers: { ndim: 1 },
      strings: { activation: 'none' },
    },
  );
  const sequence = graph.node('Transpose', [inType(context, convolved)], channelsFirst);
  return writeLinear(context, graph.node('Mul', [after!, sequence]), [design.output], hidden, [hidden]);
}

/** Splits the last dimension into three. */
function split({ graph }: GraphContext, input: string, width: number): string[] {
  const outputs = ['before', 'after', 'values'].map((name) => graph.newName(name));
  graph.node('Split', [input, graph.integers(width, width, width)], { outputs, integers: { axis: -1 } });
  return outputs;
}

const inSingle = ({ graph, type }: GraphContext, input: string): string =>
  type === 'float32' ? input : graph.node('Cast', [input], { integers: { to: WeightType.float32 } });

const inType = ({ graph, type }: GraphContext, input: string): string =>
  type === 'float32' ? input : graph.node('Cast', [input], { integers: { to: WeightType[type] } });
