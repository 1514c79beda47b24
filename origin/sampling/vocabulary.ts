import type { TokenBytes } from '../tokenizer/token-bytes.ts';

/** The part of the tokenizer that samplers need for DRY's breakers. */
export interface SamplerVocabulary {
  readonly tokenBytes: TokenBytes;
  /** Token ids of a text that continues another: without special tokens around it or a space before it. */
  encode(text: string): readonly number[];
}
