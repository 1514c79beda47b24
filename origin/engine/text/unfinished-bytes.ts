const NONE = new Uint8Array(0);

/** Returns the length of the UTF-8 sequence that a byte begins; 0 if it begins none. */
function lengthOf(byte: number): number {
  if (byte < 0xc2 || byte > 0xf4) return 0;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/**
 * Returns the bytes at the end of a text that a decoder holds back, because they may begin a character.
 * @param before what it held back before
 */
export function unfinishedBytes(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  if (bytes.length > 0 && bytes[bytes.length - 1]! < 0x80) return NONE;
  const all = Uint8Array.from([...before, ...bytes]);
  for (let start = all.length - 1; start >= Math.max(0, all.length - 3); start--) {
    const length = lengthOf(all[start]!);
    if (length === 0) continue;
    const rest = all.subarray(start);
    return length > rest.length && isHeld(rest) ? rest : NONE;
  }
  return NONE;
}

function isHeld(bytes: Uint8Array): boolean {
  return new TextDecoder('utf-8').decode(bytes, { stream: true }) === '';
}
