import type { BlockBeforeDesign } from '../design/mixer-design.ts';
import { writeAttention } from './attention.ts';
import { writeMlp } from './feed-forward.ts';
import { type GraphContext, writeLinear } from './linear.ts';
import { writeOptionalNorm } from './norms.ts';
import type { Positions } from './positions.ts';
import { writeStateSpace } from './state-space.ts';

/** Writes a state space of one layer with the block before it. */
export function writeBlockBefore(
  context: GraphContext,
  positions: Positions,
  design: BlockBeforeDesign,
  layer: number,
  input: readonly [stream: string, embedded: string],
  hidden: number,
): string {
  const { graph } = context;
  const { norm, attention, mlpNorm, mlp, linear, stateSpaceNorm, stateSpace } = design;
  const both = graph.node('Concat', input, { integers: { axis: -1 } });
  const read = writeOptionalNorm(context, both, norm, 2 * hidden);
  const attended = writeAttention(context, positions, attention, layer, read, hidden);
  const fed = writeMlp(context, mlp, writeOptionalNorm(context, attended, mlpNorm, hidden), hidden);
  const sum = graph.node('Add', [input[0], writeLinear(context, fed, [linear], hidden, [hidden])]);
  const normed = writeOptionalNorm(context, sum, stateSpaceNorm, hidden);
  return writeStateSpace(context, stateSpace, layer, normed, hidden);
}
