/** White space as Python's `str.rstrip` removes it. `\s` lacks some of it, and has U+FEFF in addition. */
const isSpace = (unit: number): boolean =>
  (unit >= 0x1c && unit <= 0x1f) ||
  unit === 0x85 ||
  (unit !== 0xfeff && /\s/.test(String.fromCharCode(unit)));

/** Returns a text without the white space at its end. */
export function withoutTrailingSpace(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
