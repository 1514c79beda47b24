import type { TokenBytes } from '../tokenizer/token-bytes.ts';

/** What samplers that speak of text (DRY's breakers, bad words) need to know of the tokenizer. */
export interface SamplerVocabulary {
  readonly tokenBytes: TokenBytes;
  /** Token ids of a text, without special tokens around it. */
  encode(text: string): readonly number[];
}
