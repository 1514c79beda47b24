import { bytesOf, type TokenBytes } from './token-bytes.ts';

/**
 * A character that no text starts with by chance and that merges with nothing. Put before a text that continues another
 * one, it takes the space that SentencePiece vocabularies put before a text.
 */
export const GUARD = '\u263a';

const GUARD_BYTES = new TextEncoder().encode(` ${GUARD}`).length;

/** The tokens behind the guard; null where they cannot be told from its own. */
export function behindGuard(guarded: ArrayLike<number>, table: TokenBytes): number[] | null {
  const ids = Array.from(guarded);
  let dropped = 0;
  let bytes = 0;
  while (dropped < ids.length && bytes < GUARD_BYTES) bytes += bytesOf(table, ids[dropped++]!).length;
  return bytes === GUARD_BYTES ? ids.slice(dropped) : null;
}
