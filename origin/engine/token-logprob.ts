import type { Alternative, TokenLogprob } from '../../shared/generation.ts';
import { bytesOf, type TokenBytes } from '../tokenizer/token-bytes.ts';

/** A token's bytes as the wire carries them: one code unit 0..255 per byte. */
function wireBytes(table: TokenBytes, id: number): string {
  return String.fromCharCode(...bytesOf(table, id));
}

/**
 * The wire form of one token with its raw logprob.
 * @param hidden the token gives no text (a special token, or one that ended the sequence)
 */
export function tokenEntry(
  table: TokenBytes,
  id: number,
  scored: { readonly logprob: number; readonly top: readonly (readonly [number, number])[] } | null,
  hidden: boolean,
): TokenLogprob {
  const entry: TokenLogprob = {
    id,
    bytes: wireBytes(table, id),
    logprob: scored?.logprob ?? null,
    top:
      scored?.top.map(([other, logprob]): Alternative => [other, wireBytes(table, other), logprob]) ?? null,
  };
  return hidden ? { ...entry, hidden } : entry;
}
