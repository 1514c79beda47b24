/**
 * The raw bytes of every token id, as one flat table that threads can share: the vocabulary that token masks
 * are made for. For special (added) tokens these are the bytes of their literal text, with SentencePiece's ▁
 * as a space.
 */
export interface TokenBytes {
  readonly vocabularySize: number;
  /** The bytes of all tokens, concatenated. */
  readonly bytes: Uint8Array;
  /** offsets[id] … offsets[id + 1] delimit token id; length vocabularySize + 1. */
  readonly offsets: Uint32Array;
  /** 1 where the id is a special token, which skip_special_tokens hides; length vocabularySize. */
  readonly special: Uint8Array;
}

/** Returns the bytes of one token as a view; empty for ids outside the table. */
export function bytesOf(table: TokenBytes, id: number): Uint8Array {
  return table.bytes.subarray(table.offsets[id] ?? 0, table.offsets[id + 1] ?? 0);
}
