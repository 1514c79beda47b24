/**
 * Raw bytes of every token id, as one flat table that threads can share. For special (added) tokens the bytes are
 * those of their literal text, where SentencePiece's ▁ is a space as ever.
 */
export interface TokenBytes {
  readonly vocabularySize: number;
  /** All tokens' bytes, one after the other. */
  readonly bytes: Uint8Array;
  /** offsets[id] … offsets[id + 1] delimit token id; length vocabularySize + 1. */
  readonly offsets: Uint32Array;
  /** 1 where the id is a special token, which skip_special_tokens hides; length vocabularySize. */
  readonly special: Uint8Array;
}

/** The bytes of one token; a view, not a copy. Empty for ids outside the table. */
export function bytesOf(table: TokenBytes, id: number): Uint8Array {
  return table.bytes.subarray(table.offsets[id] ?? 0, table.offsets[id + 1] ?? 0);
}

/** The table without the ids from `count` on, which a tokenizer may have and its model lack. */
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
