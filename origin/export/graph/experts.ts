import { ModelError } from '../../model/config/model-json.ts';
import type { ExpertsDesign } from '../families/decoder-design.ts';
import type { GraphContext } from './linear.ts';

/** Writes a mixture of experts over [batch, sequence, hidden]. */
export function writeExperts(
  _: GraphContext,
  design: ExpertsDesign,
  _input: string,
  _hidden: number,
): string {
  throw new ModelError(`mixtures of ${design.experts.length} experts are not supported yet`);
}
