/** FNV-1a over the units of a text, as 32 bits. Short, and at once, unlike WebCrypto; for nothing secret. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** The same as 8 hexadecimal digits. */
export const fnv1aHex = (text: string): string => fnv1a(text).toString(16).padStart(8, '0');
