const NONE = new Uint8Array(0);

/**
 * Returns the bytes at the end of a text that a decoder holds back, because they may begin a character.
 * @param before what it held back before
 */
export function unfinishedBytes(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length > 0 && bytes[bytes.length - 1]! < 0x80) return NONE;
  const all = Uint8Array.from([...before, ...bytes]);
  for (let start = Math.max(0, all.length - 3); start < all.length; start++) {
    const rest = all.subarray(start);
    if (new TextDecoder('utf-8', { ignoreBOM: true }).decode(rest, { stream: true }) === '') return rest;
  }
  return NONE;
}
