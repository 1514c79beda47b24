import type { SamplerVocabulary } from '../sampling/vocabulary.ts';
import { afterGuard, GUARD } from '../tokenizer/guard.ts';
import type { TokenBytes } from '../tokenizer/token-bytes.ts';
import { PLAIN, Tokenizer } from '../tokenizer/tokenizer.ts';

/** Returns the samplers' view of a vocabulary. Loads the tokenizer when a sampler first encodes a text. */
export function samplerVocabulary(directory: string, tokenBytes: TokenBytes): SamplerVocabulary {
  let tokenizer: Tokenizer | null = null;
  const encode = (text: string): number[] => {
    tokenizer ??= Tokenizer.fromDirectory(directory);
    const guarded = tokenizer.addsLeadingSpace ? tokenizer.encode(GUARD + text, PLAIN) : null;
    return (guarded && afterGuard(guarded, tokenBytes)) ?? tokenizer.encode(text, PLAIN);
  };
  return { tokenBytes, encode };
}
