import type { StateSpaceDesign } from '../design/mixer-design.ts';
import { writeActivation } from './feed-forward.ts';
import { floatTensor, type GraphContext, nameOf, splitLast, vectorTensor, writeLinear } from './linear.ts';
import { writeHeadNorm } from './norms.ts';
import { exact, inSingle, inType, single, writeCausalConvolution, writeRecurrence } from './states.ts';

/** Writes the state space (Mamba 2) of one layer over [batch, sequence, hidden]. */
export function writeStateSpace(
  context: GraphContext,
  design: StateSpaceDesign,
  layer: number,
  input: string,
  hidden: number,
): string {
  const { graph } = context;
  const { keyHeads, heads, keySize, valueSize } = design;
  const [width, keys] = [heads * valueSize, keyHeads * keySize];
  const channels = width + 2 * keys;
  const read = graph.times(input, design.multipliers?.input ?? 1, context.type);
  const [gate, mixed] = splitLast(graph, project(context, design, read, hidden), [width, channels]);
  const convolved = writeCausalConvolution(context, design.kernel, layer, mixed!, channels, 'silu');
  const [values, key, query] = splitLast(graph, convolved, [width, keys, keys]);
  const { step, decay } = writeSteps(context, design, read, hidden);
  const stepped = eachHead(context, design, values!, graph.node('Unsqueeze', [step, graph.integers(-1)]));
  const recalled = writeRecurrence(context, { ...design, rule: 'gated', scale: 1 }, layer, {
    query: query!,
    key: key!,
    value: stepped,
    decay,
  });
  const skip = floatTensor(
    single(context),
    nameOf(design.skip),
    context.weights.open(design.skip, 'vector', heads, 1),
    [heads, 1],
  );
  const sum = graph.node('Add', [recalled, eachHead(context, design, values!, skip)]);
  const gated = inType(context, writeGate(context, design, sum, gate!));
  const result = writeLinear(context, gated, [design.output], width, [hidden]);
  return graph.times(result, design.multipliers?.output ?? 1, context.type);
}

/** Gate, values, keys and queries in one tensor. */
function project(context: GraphContext, design: StateSpaceDesign, input: string, hidden: number): string {
  const { graph } = context;
  const { keyHeads, heads, keySize, valueSize, multipliers } = design;
  const sizes = [heads * valueSize, heads * valueSize, keyHeads * keySize, keyHeads * keySize];
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const projected = inSingle(context, writeLinear(context, input, [design.input], hidden, [total]));
  if (multipliers === null) return projected;
  const factors = [multipliers.gate, multipliers.value, multipliers.key, multipliers.query];
  const values = factors.flatMap((factor, index) => Array<number>(sizes[index]!).fill(factor));
  const name = `multipliers/${factors.join()}/${sizes.join()}`;
  return graph.node('Mul', [projected, graph.constant(name, 'float32', [total], values)]);
}

/** Multiplies heads [batch, sequence, heads · valueSize] by factors that end with [heads, 1]. */
function eachHead(
  { graph }: GraphContext,
  { heads, valueSize }: StateSpaceDesign,
  values: string,
  factors: string,
): string {
  const split = graph.node('Reshape', [values, graph.integers(0, 0, heads, valueSize)]);
  const product = graph.node('Mul', [split, factors]);
  return graph.node('Reshape', [product, graph.integers(0, 0, heads * valueSize)]);
}

/**
 * The step of each head, and its decay in log space. Softplus of ONNX Runtime rounds by the number of values,
 * this operator does not.
 */
function writeSteps(context: GraphContext, design: StateSpaceDesign, input: string, hidden: number) {
  const { graph } = context;
  const { heads, stepLimits, multipliers } = design;
  const projected = inSingle(context, writeLinear(exact(context), input, [design.step], hidden, [heads]));
  const raw = graph.times(projected, multipliers?.step ?? 1, 'float32');
  const bias = vectorTensor(single(context), design.stepBias, heads);
  const ones = graph.constant(`ones/${heads}/float32`, 'float32', [heads], Array<number>(heads).fill(1));
  const free = graph.node('LinearAttentionGate', [raw, bias, ones], { microsoft: true });
  const step = withinLimits(context, free, stepLimits);
  const strength = graph.node('Exp', [vectorTensor(single(context), design.logDecay, heads)]);
  return { step, decay: graph.node('Mul', [step, graph.node('Neg', [strength])]) };
}

/** A step is above 0. */
function withinLimits(
  { graph }: GraphContext,
  step: string,
  [min, max]: StateSpaceDesign['stepLimits'],
): string {
  if (min <= 0 && max === Infinity) return step;
  const limit = (value: number) => (Number.isFinite(value) ? graph.scalar(value, 'float32') : '');
  const limits = max === Infinity ? [limit(min)] : [limit(min), limit(max)];
  return graph.node('Clip', [step, ...limits]);
}

function writeGate(context: GraphContext, design: StateSpaceDesign, values: string, gate: string): string {
  const { graph } = context;
  const { keyHeads, heads, valueSize, norm, normPlace } = design;
  const open = writeActivation(single(context), gate, 'silu');
  const normed = (input: string) =>
    norm === null
      ? input
      : writeHeadNorm(
          single(context),
          input,
          { ...norm, over: keyHeads === 1 ? 'width' : 'each-head' },
          keyHeads,
          (heads * valueSize) / keyHeads,
        );
  return normPlace === 'before-gate'
    ? graph.node('Mul', [normed(values), open])
    : normed(graph.node('Mul', [values, open]));
}
