/**
 * The alphabet of byte-level vocabularies: one printable character per byte, as GPT-2 defined it. Printable Latin-1
 * characters stand for themselves, the other bytes for U+0100 onwards in ascending order.
 */
export function byteAlphabet(): ReadonlyMap<string, number> {
  const alphabet = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte += 1) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
    alphabet.set(String.fromCharCode(printable ? byte : next), byte);
    if (!printable) next += 1;
  }
  return alphabet;
}
