/** Bytes as text, with the functions that Node, workerd and browsers share. */

const utf8 = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** Returns code units 0..255 as bytes. */
export const bytesOfUnits = (units: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(units, (unit) => unit.charCodeAt(0));

/** Units that one call of String.fromCharCode takes: more may overflow the stack. */
const UNITS_PER_CALL = 4096;

/** Returns bytes as code units 0..255. */
export function unitsOf(bytes: Uint8Array): string {
  let units = '';
  for (let at = 0; at < bytes.length; at += UNITS_PER_CALL) {
    const part: ArrayLike<number> = bytes.subarray(at, at + UNITS_PER_CALL);
    // A spread takes fifty times as long.
    units += String.fromCharCode.apply(null, part as number[]);
  }
  return units;
}

/** Decodes UTF-8; broken characters become U+FFFD. */
export const utf8Of = (bytes: Uint8Array<ArrayBuffer>): string => utf8.decode(bytes);

const DIGITS = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
const PADDING = '='.charCodeAt(0);

/** Returns base64. `btoa` takes five times as long for a row of logprobs. */
export function base64Of(bytes: Uint8Array): string {
  const { length } = bytes;
  const text = new Uint8Array(4 * Math.ceil(length / 3));
  for (let from = 0, to = 0; from < length; from += 3, to += 4) {
    const bits = (bytes[from]! << 16) | ((bytes[from + 1] ?? 0) << 8) | (bytes[from + 2] ?? 0);
    text[to] = DIGITS[bits >> 18]!;
    text[to + 1] = DIGITS[(bits >> 12) & 63]!;
    text[to + 2] = DIGITS[(bits >> 6) & 63]!;
    text[to + 3] = DIGITS[bits & 63]!;
  }
  if (length % 3 !== 0) text.fill(PADDING, (length % 3) - 3);
  return utf8Of(text);
}
