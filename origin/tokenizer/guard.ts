import { bytesOf, type TokenBytes } from './token-bytes.ts';

/**
 * A character that rarely starts a text and merges with nothing. Placed before a text that continues another
 * one, it receives the space that SentencePiece vocabularies put before a text.
 */
export const GUARD = '\u263a';

const GUARD_BYTES = new TextEncoder().encode(` ${GUARD}`).length;

/** Returns the tokens after the guard, or null if the guard shares a token with the text. */
export function afterGuard(guarded: ArrayLike<number>, table: TokenBytes): number[] | null {
  const ids = Array.from(guarded);
  let dropped = 0;
  let bytes = 0;
  while (dropped < ids.length && bytes < GUARD_BYTES) bytes += bytesOf(table, ids[dropped++]!).length;
  return bytes === GUARD_BYTES ? ids.slice(dropped) : null;
}
