/**
 * Copies the logits of the tokens in a bit set (bit id & 31 of word id >>> 5) and sets all others to −∞.
 * Starts from a full or an empty copy, whichever is nearer, so tight and wide masks are fast. Ids beyond the
 * bit set are not in it.
 */
export function copyMasked(edited: Float32Array, logits: Float32Array, mask: Uint32Array): void {
  const size = logits.length;
  const words = wordsOf(size);
  let count = 0;
  for (let word = 0; word < words; word++) count += bitCount(mask[word] ?? 0);
  const mostly = 2 * count > size;
  if (mostly) edited.set(logits);
  else edited.fill(Number.NEGATIVE_INFINITY);
  for (let word = 0; word < words; word++) {
    const allowed = mask[word] ?? 0;
    for (let bits = mostly ? ~allowed : allowed; bits !== 0; bits &= bits - 1) {
      const id = (word << 5) + 31 - Math.clz32(bits & -bits);
      // The last word may have bits past the row.
      if (id < size) edited[id] = mostly ? Number.NEGATIVE_INFINITY : logits[id]!;
    }
  }
}

/** The length of a bit set of so many ids. */
export const wordsOf = (size: number): number => (size + 31) >>> 5;

/** Whether a bit set has an id. */
export const isIn = (set: Uint32Array, id: number): boolean => (set[id >>> 5]! & (1 << (id & 31))) !== 0;

/** The number of bits set in a 32-bit word (Warren, "Hacker's Delight", 5-1). */
function bitCount(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Returns the bit set of these ids, without those outside the vocabulary. */
export function bitSetOf(ids: readonly number[], vocabularySize: number): Uint32Array {
  const words = new Uint32Array(wordsOf(vocabularySize));
  for (const id of ids) if (id < vocabularySize) words[id >>> 5]! |= 1 << (id & 31);
  return words;
}
