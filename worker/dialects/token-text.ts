const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lossy = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

const PLAIN = /^[\0-\x7f]*$/;

const toBytes = (units: string): Uint8Array => Uint8Array.from(units, (unit) => unit.charCodeAt(0));

/**
 * A token's name: its text, or `bytes:\xe2\x82` when its bytes (one code unit 0..255 each) are no text by themselves.
 */
export function tokenText(bytes: string): string {
  if (PLAIN.test(bytes)) return bytes;
  try {
    return strict.decode(toBytes(bytes));
  } catch {
    const escaped = Array.from(bytes, (unit) => `\\x${unit.charCodeAt(0).toString(16).padStart(2, '0')}`);
    return `bytes:${escaped.join('')}`;
  }
}

/** Text of bytes given as code units 0..255; what is no UTF-8 becomes U+FFFD. */
export function lossyText(bytes: string): string {
  return PLAIN.test(bytes) ? bytes : lossy.decode(toBytes(bytes));
}
