import { bytesOfUnits, utf8Of } from '@continuo/shared/binary-text.ts';

const PLAIN = /^[\0-\x7f]*$/;

/** Decodes bytes given as code units 0..255; invalid UTF-8 becomes U+FFFD. */
export function lossyText(bytes: string): string {
  return PLAIN.test(bytes) ? bytes : utf8Of(bytesOfUnits(bytes));
}

/** True if every U+FFFD of the text is encoded in the bytes, so that decoding lost nothing. */
const isLossless = (text: string, bytes: string): boolean =>
  !text.includes('\ufffd') || text.split('\ufffd').length === bytes.split('\xef\xbf\xbd').length;

/** Names a token by its text, or as `bytes:\xe2\x82` if its bytes (code units 0..255) are not UTF-8. */
export function tokenText(bytes: string): string {
  const text = lossyText(bytes);
  if (isLossless(text, bytes)) return text;
  const escaped = Array.from(bytes, (unit) => `\\x${unit.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `bytes:${escaped.join('')}`;
}
