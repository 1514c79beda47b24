import {
  layerName,
  PAST_CONVOLUTION,
  PAST_RECURRENCE,
  PRESENT_CONVOLUTION,
  PRESENT_RECURRENCE,
} from '@continuo/origin/model/config/decoder-names.ts';
import { ElementType } from '@continuo/origin/model/onnx/onnx-graph.ts';
import type { CausalKernel, RecurrenceShape } from '../design/mixer-design.ts';
import { EXACT } from './float-type.ts';
import type { GraphBuilder } from './graph-builder.ts';
import { floatTensor, type GraphContext, nameOf, trimmed, vectorTensor } from './linear.ts';

/** Operators that read and write the states of a layer. All of it is in float32, in any graph. */

/** The same graph, whose next tensors are in float32. */
export const single = (context: GraphContext): GraphContext => ({ ...context, type: 'float32' });

/** The same graph, whose next matrices are not quantized: a decay acts on all later positions. */
export const exact = (context: GraphContext): GraphContext => ({
  ...context,
  precision: EXACT[context.type],
});

export const inSingle = ({ graph, type }: GraphContext, input: string): string =>
  type === 'float32' ? input : graph.node('Cast', [input], { integers: { to: ElementType.float32 } });

/** Casts a result in float32 to the type of the graph. */
export const inType = ({ graph, type }: GraphContext, input: string): string =>
  type === 'float32' ? input : graph.node('Cast', [input], { integers: { to: ElementType[type] } });

/** Adds a state of the layer, [batch, …sizes]. Returns the names of its input and output. */
function addState(
  graph: GraphBuilder,
  templates: readonly [past: string, present: string],
  layer: number,
  sizes: readonly number[],
): readonly [past: string, present: string] {
  const [past, present] = [layerName(templates[0], layer), layerName(templates[1], layer)];
  const dimensions = ['batch_size', ...sizes];
  graph.input({ name: past, elementType: ElementType.float32, dimensions });
  graph.output({ name: present, elementType: ElementType.float32, dimensions });
  return [past, present];
}

/** Writes the convolution of a layer over [batch, sequence, channels] in float32. */
export function writeCausalConvolution(
  context: GraphContext,
  kernel: CausalKernel,
  layer: number,
  input: string,
  channels: number,
  activation: 'none' | 'silu',
): string {
  const { graph, weights } = context;
  const { length, weight, bias } = kernel;
  const channelsFirst = { integerLists: { perm: [0, 2, 1] } };
  const names = [PAST_CONVOLUTION, PRESENT_CONVOLUTION] as const;
  const [past, present] = addState(graph, names, layer, [channels, length - 1]);
  const matrix = weights.open(weight, 'matrix', channels, length);
  const taps = floatTensor(single(context), nameOf(weight), matrix, [channels, 1, length]);
  const offset = bias === null ? '' : vectorTensor(single(context), bias, channels);
  const inputs = [graph.node('Transpose', [input], channelsFirst), taps, offset, past];
  const convolved = graph.node('CausalConvWithState', trimmed(inputs), {
    microsoft: true,
    outputs: [graph.newName('convolved'), present],
    integers: { ndim: 1 },
    strings: { activation },
  });
  return graph.node('Transpose', [convolved], channelsFirst);
}

interface Recurrence extends RecurrenceShape {
  /** gated: S = e^decay S + k vᵀ; gated_delta: S = e^decay S + rate k (v − (e^decay S)ᵀ k). */
  readonly rule: 'gated' | 'gated_delta';
  /** Factor of the results Sᵀ q; not 0. */
  readonly scale: number;
}

/** In float32: [batch, sequence, heads · size], decay and rate [batch, sequence, heads]. */
interface RecurrenceInputs {
  readonly query: string;
  readonly key: string;
  readonly value: string;
  readonly decay: string;
  /** Absent for `gated`. */
  readonly rate?: string;
}

/** Writes the recurrence of a layer. Returns [batch, sequence, heads · valueSize] in float32. */
export function writeRecurrence(
  { graph }: GraphContext,
  { rule, keyHeads, heads, keySize, valueSize, scale }: Recurrence,
  layer: number,
  { query, key, value, decay, rate = '' }: RecurrenceInputs,
): string {
  const names = [PAST_RECURRENCE, PRESENT_RECURRENCE] as const;
  const [past, present] = addState(graph, names, layer, [heads, keySize, valueSize]);
  return graph.node('LinearAttention', trimmed([query, key, value, past, decay, rate]), {
    microsoft: true,
    outputs: [graph.newName('recalled'), present],
    integers: { q_num_heads: keyHeads, kv_num_heads: heads },
    floats: { scale },
    strings: { update_rule: rule },
  });
}
