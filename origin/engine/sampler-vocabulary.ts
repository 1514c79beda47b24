import type { SamplerVocabulary } from '../sampling/vocabulary.ts';
import type { TokenBytes } from '../tokenizer/token-bytes.ts';
import { CONTINUING, Tokenizer } from '../tokenizer/tokenizer.ts';

/** Returns the samplers' view of a vocabulary. Loads the tokenizer when a sampler first encodes a text. */
export function samplerVocabulary(directory: string, tokenBytes: TokenBytes): SamplerVocabulary {
  let tokenizer: Tokenizer | null = null;
  const encode = (text: string): number[] => {
    tokenizer ??= Tokenizer.fromDirectory(directory);
    return tokenizer.encode(text, CONTINUING);
  };
  return { tokenBytes, encode };
}
