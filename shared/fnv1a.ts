/** Returns FNV-1a of a text's UTF-16 units, 32 bits. Needs no promise, as WebCrypto does. Not for secrets. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** Returns it as 8 hexadecimal digits. */
export const fnv1aHex = (text: string): string => fnv1a(text).toString(16).padStart(8, '0');
