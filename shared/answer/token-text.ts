const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

const PLAIN = /^[\0-\x7f]*$/;

const toBytes = (units: string): Uint8Array => Uint8Array.from(units, (unit) => unit.charCodeAt(0));

/** Text of bytes given as code units 0..255; what is no UTF-8 becomes U+FFFD. */
export function lossyText(bytes: string): string {
  return PLAIN.test(bytes) ? bytes : decoder.decode(toBytes(bytes));
}

/** True when nothing was lost: each U+FFFD of the text was written out in the bytes. */
const denotes = (text: string, bytes: string): boolean =>
  !text.includes('\ufffd') || text.split('\ufffd').length === bytes.split('\xef\xbf\xbd').length;

/**
 * A token's name: its text, or `bytes:\xe2\x82` when its bytes (one code unit 0..255 each) are no text by themselves.
 */
export function tokenText(bytes: string): string {
  const text = lossyText(bytes);
  if (denotes(text, bytes)) return text;
  const escaped = Array.from(bytes, (unit) => `\\x${unit.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `bytes:${escaped.join('')}`;
}
