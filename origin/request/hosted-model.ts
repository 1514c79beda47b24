import type { Encoder } from '../tokenizer/encoder.ts';
import type { TokenizerThreads } from '../tokenizer/tokenizer-thread.ts';
import type { ServedModel } from './served-model.ts';

/** A model with the threads of an origin. */
export interface HostedModel extends ServedModel {
  readonly encoder: Encoder;
  /** Serves the tokenizer endpoints, after everything else. */
  readonly tokenizerThreads: TokenizerThreads;
}
