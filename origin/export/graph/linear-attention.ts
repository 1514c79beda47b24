import type { LinearAttentionDesign } from '../design/mixer-design.ts';
import { writeActivation } from './feed-forward.ts';
import {
  type GraphContext,
  haveSameFormat,
  inEightBits,
  splitLast,
  vectorTensor,
  writeLinear,
} from './linear.ts';
import { writeHeadNorm } from './norms.ts';
import { exact, inSingle, inType, single, writeCausalConvolution, writeRecurrence } from './states.ts';

/** What is added to the squared length of queries and keys. */
const LENGTH_EPSILON = 1e-6;

/** Writes the gated delta network of one layer over [batch, sequence, hidden]. */
export function writeLinearAttention(
  context: GraphContext,
  design: LinearAttentionDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph } = context;
  const { keyHeads, heads, keySize, valueSize, norm } = design;
  const sizes = [keyHeads * keySize, keyHeads * keySize, heads * valueSize];
  const channels = sizes.reduce((sum, size) => sum + size, 0);
  const mixed = inSingle(context, project(context, design, input, hidden, sizes));
  const convolved = writeCausalConvolution(context, design.kernel, layer, mixed, channels, 'silu');
  const [query, key, value] = splitLast(graph, convolved, sizes);
  const recalled = writeRecurrence(
    context,
    { ...design, rule: 'gated_delta', scale: 1 / Math.sqrt(keySize) },
    layer,
    {
      query: unitHeads(context, query!, design),
      key: unitHeads(context, key!, design),
      value: value!,
      ...gates(context, design, input, hidden),
    },
  );
  const normed = writeHeadNorm(single(context), recalled, { ...norm, over: 'head' }, heads, valueSize);
  const open = openness(context, design, input, hidden);
  const gated = inType(context, graph.node('Mul', [normed, open]));
  return writeLinear(inEightBits(context), gated, [design.output], heads * valueSize, [hidden]);
}

/** Queries, keys and values in one tensor. */
function project(
  context: GraphContext,
  { query, key, value }: LinearAttentionDesign,
  input: string,
  hidden: number,
  sizes: readonly number[],
): string {
  const projections = [query, key, value];
  if (haveSameFormat(context, projections, hidden, sizes)) {
    return writeLinear(context, input, projections, hidden, sizes);
  }
  const parts = projections.map((projection, index) =>
    writeLinear(context, input, [projection], hidden, [sizes[index]!]),
  );
  return context.graph.node('Concat', parts, { integers: { axis: -1 } });
}

/**
 * Divides each head of queries or keys by its length. RMS normalization does it: the mean square is the
 * squared length by the size. A sum of squares would round by the place in memory.
 */
function unitHeads(
  { graph }: GraphContext,
  input: string,
  { keyHeads, keySize }: LinearAttentionDesign,
): string {
  const split = graph.node('Reshape', [input, graph.integers(0, 0, keyHeads, keySize)]);
  const share = Array<number>(keySize).fill(1 / Math.sqrt(keySize));
  const unit = graph.node(
    'SimplifiedLayerNormalization',
    [split, graph.constant(`unit/${keySize}`, 'float32', [keySize], share)],
    { integers: { axis: -1 }, floats: { epsilon: LENGTH_EPSILON / keySize } },
  );
  return graph.node('Reshape', [unit, graph.integers(0, 0, keyHeads * keySize)]);
}

/** What multiplies the results, in float32. */
function openness(context: GraphContext, design: LinearAttentionDesign, input: string, hidden: number) {
  const { narrow, heads, valueSize } = design;
  const read = narrow === null ? input : writeLinear(context, input, [narrow.gate], hidden, [narrow.width]);
  const width = narrow?.width ?? hidden;
  const gate = inSingle(context, writeLinear(context, read, [design.gate], width, [heads * valueSize]));
  return narrow === null
    ? writeActivation(single(context), gate, 'silu')
    : context.graph.node('Sigmoid', [gate]);
}

/**
 * Decay, in log space, and rate of each head. Softplus of ONNX Runtime rounds by the number of values, so the
 * operator for both is used.
 */
function gates(context: GraphContext, design: LinearAttentionDesign, input: string, hidden: number) {
  const { graph } = context;
  const { heads, rateScale } = design;
  if (design.narrow !== null) return narrowGates(context, design, design.narrow, input, hidden);
  const both = writeLinear(exact(context), input, [design.decay, design.rate], hidden, [heads, heads]);
  const [raw, opening] = splitLast(graph, inSingle(context, both), [heads, heads]);
  const bias = vectorTensor(single(context), design.decayBias, heads);
  const [decay, open] = [graph.newName('decay'), graph.newName('rate')];
  graph.node('LinearAttentionGate', [raw!, bias, strengths(context, design), opening!], {
    microsoft: true,
    outputs: [decay, open],
  });
  const rate = rateScale === 1 ? open : graph.node('Mul', [open, graph.scalar(rateScale, 'float32')]);
  return { decay, rate };
}

/** −e^logDecay, [heads]. */
function strengths(context: GraphContext, { logDecay, heads }: LinearAttentionDesign): string {
  const { graph } = context;
  return graph.node('Neg', [graph.node('Exp', [vectorTensor(single(context), logDecay, heads)])]);
}

/** A decay of each value of a key. */
function narrowGates(
  context: GraphContext,
  design: LinearAttentionDesign,
  narrow: NonNullable<LinearAttentionDesign['narrow']>,
  input: string,
  hidden: number,
) {
  const { graph } = context;
  const { heads, keySize } = design;
  const keys = heads * keySize;
  const vector = writeLinear(exact(context), input, [narrow.decay], hidden, [narrow.width]);
  const raw = writeLinear(exact(context), vector, [design.decay], narrow.width, [keys]);
  const bias = vectorTensor(single(context), design.decayBias, keys);
  const column = graph.node('Reshape', [strengths(context, design), graph.integers(heads, 1)]);
  const repeated = graph.node('Expand', [column, graph.integers(heads, keySize)]);
  const scale = graph.node('Reshape', [repeated, graph.integers(keys)]);
  const decay = graph.node('LinearAttentionGate', [inSingle(context, raw), bias, scale], { microsoft: true });
  const opening = writeLinear(exact(context), input, [design.rate], hidden, [heads]);
  return { decay, rate: graph.node('Sigmoid', [inSingle(context, opening)]) };
}
