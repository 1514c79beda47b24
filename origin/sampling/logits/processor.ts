import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import type { SamplerParameters } from '../parameters.ts';
import type { RowEdits } from '../row-edits.ts';
import type { TokenHistory } from '../token-history.ts';
import type { SamplerWorkspace } from '../workspace.ts';

/** Processors keep logits within ±this: an infinity would make probabilities NaN, or forbid the token. */
export const MAX_FLOAT32 = 3.4028234663852886e38;

/** A logits processor: changes single logits of a row, given the tokens so far. */
export interface LogitProcessor {
  /** @param logits the row's logits by token id */
  apply(logits: RowEdits, history: TokenHistory): void;
}

/** Makes the processor for one sequence, or returns null if its parameters switch it off. */
export type LogitProcessorFactory = (
  parameters: SamplerParameters,
  tokenBytes: TokenBytes,
  workspace: SamplerWorkspace,
) => LogitProcessor | null;
