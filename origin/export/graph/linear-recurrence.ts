import type { LinearRecurrenceDesign } from '../design/mixer-design.ts';
import { writeActivation } from './feed-forward.ts';
import { type GraphContext, splitLast, vectorTensor, writeLinear } from './linear.ts';
import type { Positions } from './positions.ts';
import { exact, inSingle, inType, single, writeCausalConvolution, writeRecurrence } from './states.ts';

/** Factor of the decay: a constant of the model. */
const DECAY_FACTOR = -8;

/** Writes the gated linear recurrence of one layer over [batch, sequence, hidden]. */
export function writeLinearRecurrence(
  context: GraphContext,
  positions: Positions,
  design: LinearRecurrenceDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph } = context;
  const { width, kernel, activation } = design;
  const both = writeLinear(context, input, [design.input, design.branch], hidden, [width, width]);
  const [mixed, branch] = splitLast(graph, both, [width, width]);
  const values = writeCausalConvolution(context, kernel, layer, inSingle(context, mixed!), width, 'none');
  const { decay, opening } = gates(context, design, inType(context, values));
  const gated = graph.node('Mul', [values, opening]);
  const value = graph.node('Mul', [gated, writeRoots(context, positions, decay)]);
  const unit = graph.node('Expand', [graph.scalar(1, 'float32'), graph.node('Shape', [value])]);
  // Each value is a head of its own, with one key that is 1.
  const shape = { rule: 'gated', keyHeads: width, heads: width, keySize: 1, valueSize: 1, scale: 1 } as const;
  const recalled = writeRecurrence(context, shape, layer, { query: unit, key: unit, value, decay });
  const open = writeActivation(context, branch!, activation);
  const result = graph.node('Mul', [inType(context, recalled), open]);
  return writeLinear(context, result, [design.output], width, [hidden]);
}

/** Decay, in log space, and the gate of the input, [batch, sequence, width] in float32. */
function gates(context: GraphContext, design: LinearRecurrenceDesign, input: string) {
  const { graph } = context;
  const { width, gates: blocks } = design;
  const size = width / blocks.length;
  const parts = splitLast(graph, input, Array<number>(blocks.length).fill(size));
  const outputs = blocks.map((block, index) =>
    splitLast(
      graph,
      writeLinear(exact(context), parts[index]!, [block.input, block.decay], size, [size, size]),
      [size, size],
    ),
  );
  const joined = (place: number) => {
    const all = graph.node(
      'Concat',
      outputs.map((pair) => pair[place]!),
      { integers: { axis: -1 } },
    );
    return graph.node('Sigmoid', [inSingle(context, all)]);
  };
  const strength = graph.node('Softplus', [vectorTensor(single(context), design.decay, width)]);
  const scale = graph.node('Mul', [strength, graph.scalar(DECAY_FACTOR, 'float32')]);
  return { opening: joined(0), decay: graph.node('Mul', [joined(1), scale]) };
}

/** √(1 − e^2a), and 1 at the first position of a sequence. */
function writeRoots({ graph }: GraphContext, positions: Positions, decay: string): string {
  const unit = graph.scalar(1, 'float32');
  // 1 − e^2a = −2 t / (1 − t) with t = tanh(a). Exp of ONNX Runtime rounds by the place of a value.
  const tangent = graph.node('Tanh', [decay]);
  const doubled = graph.node('Mul', [tangent, graph.scalar(-2, 'float32')]);
  const roots = graph.node('Sqrt', [graph.node('Div', [doubled, graph.node('Sub', [unit, tangent])])]);
  const isFirst = graph.node('Equal', [positions.ids(), graph.integer(0)]);
  return graph.node('Where', [graph.node('Unsqueeze', [isFirst, graph.integers(-1)]), unit, roots]);
}
