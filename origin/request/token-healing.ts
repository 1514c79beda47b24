import { covers, restOf } from '../engine/text/healing.ts';
import type { TokenBytes } from '../tokenizer/token-bytes.ts';

/** Tokens at the end of a prompt that are chosen again, at most. */
const MAX_HEALED_TOKENS = 8;

/**
 * Returns the first position of a prompt that may be chosen again: the earliest from which one token could
 * cover the rest of the prompt. Null if the prompt's own tokens are the only ones. The first token is never
 * chosen again.
 * @param end a position before which tokens stay, because they stand for an image
 */
export function healingStart(tokens: Int32Array, end: number, tokenBytes: TokenBytes): number | null {
  const last = tokens.length - 1;
  const rests: Uint8Array[] = [];
  for (let at = last; at >= Math.max(1, end, tokens.length - MAX_HEALED_TOKENS); at--) {
    if (tokenBytes.special[tokens[at]!] === 1) break;
    rests.push(restOf(tokens, at, tokenBytes));
  }
  for (let back = rests.length - 1; back >= 0; back--) {
    const rest = rests[back]!;
    if (rest.length === 0) continue;
    for (let id = 0; id < tokenBytes.vocabularySize; id++) {
      if (id !== tokens[last - back] && covers(tokenBytes, id, rest)) return last - back;
    }
  }
  return null;
}
