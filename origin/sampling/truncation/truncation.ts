import type { DrawParameters } from '../parameters.ts';
import type { DrawSource } from '../rng.ts';
import type { SamplerWorkspace } from '../workspace.ts';

/** A step that removes candidates; at least one remains, and the weights of the others stay as they are. */
export interface Truncation {
  apply(workspace: SamplerWorkspace, step: number): void;
}

/** Makes the step for one sequence, or returns null if its parameters switch it off. */
export type TruncationFactory = (parameters: DrawParameters, draws: DrawSource) => Truncation | null;
