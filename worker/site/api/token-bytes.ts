/** Token names as the API writes them: text, or `bytes:\xe2\x82` for bytes that are no UTF-8. */

const ESCAPED = /^bytes:((?:\\x[0-9a-f]{2})+)$/;
const encoder = new TextEncoder();

/** Returns the bytes of a token. */
export function tokenBytes(name: string): Uint8Array {
  const escapes = ESCAPED.exec(name)?.[1];
  if (escapes === undefined) return encoder.encode(name);
  return Uint8Array.from(escapes.split('\\x').slice(1), (hex) => Number.parseInt(hex, 16));
}

/** Whether the token is a part of a character. */
export const isPartial = (name: string): boolean => ESCAPED.test(name);

/** Returns bytes as `e2 82`. */
export const hexBytes = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
