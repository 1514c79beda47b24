import type { DrawSource } from '../rng.ts';
import type { DrawParameters } from '../token-draw.ts';
import type { SamplerWorkspace } from '../workspace.ts';

/** A step that removes candidates and leaves the others' weights, and at least one candidate, in place. */
export interface Truncation {
  apply(workspace: SamplerWorkspace, step: number): void;
}

/** Makes the step for one sequence, or null where its parameters switch it off. */
export type TruncationFactory = (parameters: DrawParameters, draws: DrawSource) => Truncation | null;
