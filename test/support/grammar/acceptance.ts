import type { CompiledGrammar } from '../../../origin/grammar/runtime/constraint.ts';
import type { TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';

/** Whether the grammar accepts the text byte by byte and may end after it. Expects a token for every byte. */
export function acceptsText(grammar: CompiledGrammar, text: string, tokens: TokenBytes): boolean {
  const byteTokens = singleByteTokens(tokens);
  const constraint = grammar.start();
  for (const byte of new TextEncoder().encode(text)) {
    const token = byteTokens[byte]!;
    if (((constraint.mask()[token >>> 5]! >>> (token & 31)) & 1) === 0) return false;
    constraint.accept(token);
  }
  return constraint.accepting;
}

function singleByteTokens(tokens: TokenBytes): number[] {
  const ids: number[] = [];
  for (let id = 0; id < tokens.vocabularySize; id++) {
    if (tokens.special[id] === 0 && tokens.offsets[id + 1]! - tokens.offsets[id]! === 1) {
      ids[tokens.bytes[tokens.offsets[id]!]!] ??= id;
    }
  }
  return ids;
}
