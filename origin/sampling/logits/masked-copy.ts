/**
 * Copies the logits of the tokens that every given bit set contains (bit id & 31 of word id >>> 5) and sets all others
 * to −∞. Words of zeros cost nothing, so tight masks are fast. Ids beyond a bit set are not in it.
 */
export function copyMasked(
  scores: Float32Array,
  logits: Float32Array,
  mask: Uint32Array | null,
  allowed: Uint32Array | null,
): void {
  if (mask === null && allowed === null) {
    scores.set(logits);
    return;
  }
  scores.fill(Number.NEGATIVE_INFINITY);
  const words = (logits.length + 31) >>> 5;
  for (let word = 0; word < words; word++) {
    let bits = (mask ? (mask[word] ?? 0) : -1) & (allowed ? (allowed[word] ?? 0) : -1);
    while (bits !== 0) {
      const id = (word << 5) + (31 - Math.clz32(bits & -bits));
      bits &= bits - 1;
      // The last word may have bits past the row.
      if (id < logits.length) scores[id] = logits[id]!;
    }
  }
}

/** The bit set of these ids; ids outside the vocabulary are left out. */
export function bitSetOf(ids: readonly number[], vocabularySize: number): Uint32Array {
  const words = new Uint32Array((vocabularySize + 31) >>> 5);
  for (const id of ids) if (id < vocabularySize) words[id >>> 5]! |= 1 << (id & 31);
  return words;
}
