import type { SamplingParameters } from '../../../shared/sampling.ts';
import type { TokenHistory } from '../token-history.ts';
import type { SamplerVocabulary } from '../vocabulary.ts';
import type { SamplerWorkspace } from '../workspace.ts';
import type { RowEdits } from './row-edits.ts';

/** What no processor may push a logit beyond: an infinity would make the probabilities NaN, or forbid the token. */
export const LARGEST_FLOAT32 = 3.4028234663852886e38;

/** A step that changes single logits of a row, given what was said so far. */
export interface LogitProcessor {
  /** @param scores the row's logits by token id. */
  apply(scores: RowEdits, history: TokenHistory): void;
}

/** Makes the step for one sequence, or null where its parameters switch it off. */
export type LogitProcessorFactory = (
  parameters: SamplingParameters,
  vocabulary: SamplerVocabulary,
  workspace: SamplerWorkspace,
) => LogitProcessor | null;
