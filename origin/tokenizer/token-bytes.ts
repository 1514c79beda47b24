import { bytesOf, type TokenBytes } from '@continuo/grammar/automaton/token-bytes.ts';

export { bytesOf, type TokenBytes };

/** Returns the text of ids. Broken characters become U+FFFD; ids outside the table have no text. */
export function textOf(table: TokenBytes, ids: Iterable<number>, skipSpecialTokens: boolean): string {
  const shown = Array.from(ids).filter((id) => !(skipSpecialTokens && table.special[id] === 1));
  const pieces = shown.map((id) => bytesOf(table, id));
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return new TextDecoder('utf-8', { ignoreBOM: true, fatal: false }).decode(bytes);
}

/** Returns the table of the first `count` ids, because a tokenizer may have more tokens than its model. */
export function firstTokens(
  { vocabularySize, bytes, offsets, special }: TokenBytes,
  count: number,
): TokenBytes {
  const size = Math.min(count, vocabularySize);
  return {
    vocabularySize: size,
    bytes: bytes.subarray(0, offsets[size]),
    offsets: offsets.subarray(0, size + 1),
    special: special.subarray(0, size),
  };
}
