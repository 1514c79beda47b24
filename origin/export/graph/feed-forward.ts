import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import type { Activation, MlpDesign, XieluActivation } from '../design/feed-forward-design.ts';
import type { ProjectionDesign } from '../design/weight-design.ts';
import { requireHalfOrSingle } from './float-type.ts';
import { type GraphContext, splitLast, vectorTensor, writeLinear } from './linear.ts';
import { writeMagnitude, writeMean } from './norms.ts';

/** Writes an MLP over [.., hidden]. */
export function writeMlp(context: GraphContext, design: MlpDesign, input: string, hidden: number): string {
  const { graph } = context;
  const { down, width, multipliers = { gate: 1, output: 1 }, gateThreshold } = design;
  const { raised, gate } = writeUpAndGate(context, design, input, hidden);
  const passing =
    gate === null || gateThreshold === undefined ? gate : aboveMean(context, gate, width, gateThreshold);
  const gated = passing === null ? null : graph.times(passing, multipliers.gate, context.type);
  const active =
    design.clippedSwiglu !== undefined
      ? clippedSwiglu(context, gated!, raised, design.clippedSwiglu)
      : gated === null
        ? writeActivation(context, raised, design.activation)
        : graph.node('Mul', [writeActivation(context, gated, design.activation), raised]);
  return graph.times(writeLinear(context, active, [down], width, [hidden]), multipliers.output, context.type);
}

/**
 * In 16 bits, which only devices use, up and gate are one product: a card starts fewer kernels. On a CPU, two
 * products are faster: docs/decisions/0028-prefill-runs.md has the figures.
 */
function writeUpAndGate(
  context: GraphContext,
  { gate, up, width }: MlpDesign,
  input: string,
  hidden: number,
): { readonly raised: string; readonly gate: string | null } {
  const separate = (projection: ProjectionDesign) =>
    writeLinear(context, input, [projection], hidden, [width]);
  if (gate === null) return { raised: separate(up), gate };
  if (context.type === 'float32') return { raised: separate(up), gate: separate(gate) };
  const sizes = [width, width];
  const both = writeLinear(context, input, [up, gate], hidden, sizes);
  const [raised = '', gated = ''] = splitLast(context.graph, both, sizes);
  return { raised, gate: gated };
}

/** max(0, x − mean − deviations · standard deviation) */
function aboveMean(context: GraphContext, input: string, width: number, deviations: number): string {
  const { graph, type } = context;
  const centred = graph.node('Sub', [input, writeMean(context, input, width)]);
  const limit = graph.times(writeMagnitude(context, centred, width), deviations, type);
  return graph.node('Relu', [graph.node('Sub', [centred, limit])]);
}

export function writeActivation(context: GraphContext, input: string, activation: Activation): string {
  const { graph } = context;
  if (typeof activation === 'object') return xielu(context, input, activation);
  switch (activation) {
    case 'silu':
      return graph.node('Mul', [input, graph.node('Sigmoid', [input])]);
    case 'gelu':
      return graph.node('Gelu', [input], { microsoft: true });
    case 'gelu-tanh':
      return graph.node('FastGelu', [input], { microsoft: true });
    case 'gelu-sigmoid':
      return graph.node('QuickGelu', [input], { microsoft: true, floats: { alpha: 1.702 } });
    case 'relu':
      return graph.node('Relu', [input]);
    case 'relu-squared': {
      const positive = graph.node('Relu', [input]);
      return graph.node('Mul', [positive, positive]);
    }
    default:
      throw new ModelError(`activation ${String(activation satisfies never)} is unknown`);
  }
}

function clippedSwiglu(
  { graph, type }: GraphContext,
  gate: string,
  up: string,
  { alpha, limit }: { readonly alpha: number; readonly limit: number },
): string {
  const below = graph.node('Clip', [gate, '', graph.scalar(limit, type)]);
  const within = graph.node('Clip', [up, graph.scalar(-limit, type), graph.scalar(limit, type)]);
  const sharpened = graph.node('Mul', [below, graph.scalar(alpha, type)]);
  const glu = graph.node('Mul', [below, graph.node('Sigmoid', [sharpened])]);
  return graph.node('Mul', [graph.node('Add', [within, graph.scalar(1, type)]), glu]);
}

function xielu(context: GraphContext, x: string, design: XieluActivation): string {
  const { graph, type } = context;
  requireHalfOrSingle(type, 'the activation xIELU');
  const scalar = (value: number) => graph.scalar(value, type);
  const softplus = (of: XieluActivation['alphaP']) => graph.node('Softplus', [vectorTensor(context, of, 1)]);
  const alphaP = softplus(design.alphaP);
  const alphaN = graph.node('Add', [softplus(design.alphaN), scalar(design.beta)]);
  const linear = graph.node('Mul', [x, scalar(design.beta)]);
  const square = graph.node('Mul', [graph.node('Mul', [x, x]), alphaP]);
  const clipped = graph.node('Min', [x, scalar(design.epsilon)]);
  const exponential = graph.node('Sub', [graph.node('Exp', [clipped]), scalar(1)]);
  const negative = graph.node('Mul', [graph.node('Sub', [exponential, x]), alphaN]);
  const isPositive = graph.node('Greater', [x, scalar(0)]);
  return graph.node('Add', [graph.node('Where', [isPositive, square, negative]), linear]);
}
