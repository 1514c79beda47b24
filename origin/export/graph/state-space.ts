import type { StateSpaceDesign } from '../families/decoder-design.ts';
import { floatTensor, type GraphContext, nameOf, vectorTensor, writeLinear } from './linear.ts';
import { writeHeadNorm } from './norms.ts';
import { inSingle, inType, single, splitLast, writeCausalConvolution, writeRecurrence } from './states.ts';

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
  const projected = inSingle(
    context,
    writeLinear(context, input, [design.input], hidden, [width + channels]),
  );
  const [gate, mixed] = splitLast(graph, projected, [width, channels]);
  const convolved = writeCausalConvolution(context, design.kernel, layer, mixed!, channels, 'silu');
  const [values, key, query] = splitLast(graph, convolved, [width, keys, keys]);
  const { step, decay } = writeSteps(context, design, input, hidden);
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
  return writeLinear(context, gated, [design.output], width, [hidden]);
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
 * The step of each head, and its decay in log space. Their weights are not quantized: a decay acts on all
 * later positions. Softplus of ONNX Runtime rounds by the number of values, this operator does not.
 */
function writeSteps(context: GraphContext, design: StateSpaceDesign, input: string, hidden: number) {
  const { graph, type } = context;
  const { heads, stepLimits } = design;
  const exact = { ...context, precision: type === 'float16' ? 'fp16' : 'fp32' } as const;
  const raw = inSingle(context, writeLinear(exact, input, [design.step], hidden, [heads]));
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
  const open = graph.node('Mul', [gate, graph.node('Sigmoid', [gate])]);
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
