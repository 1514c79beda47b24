import type { TokenBytes } from '../tokenizer/token-bytes.ts';

/** What samplers that speak of text (DRY's breakers, bad words) need to know of the tokenizer. */
export interface SamplerVocabulary {
  readonly tokenBytes: TokenBytes;
  /** Token ids of a text that continues another one: no special tokens around it, no space before it. */
  encode(text: string): readonly number[];
}
