import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import type { LogitEdits } from '../logit-edits.ts';
import type { SamplerParameters } from '../parameters.ts';
import type { TokenHistory } from '../token-history.ts';
import type { SamplerWorkspace } from '../workspace.ts';

/** A logits processor: changes single logits of a row, given the tokens so far. */
export interface LogitProcessor {
  apply(logits: LogitEdits, history: TokenHistory): void;
}

/** Makes the processor for one sequence, or returns null if its parameters switch it off. */
export type LogitProcessorFactory = (
  parameters: SamplerParameters,
  tokenBytes: TokenBytes,
  workspace: SamplerWorkspace,
) => LogitProcessor | null;
