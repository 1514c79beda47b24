/** What must, or must not, stand where a text begins. */
export interface Lookahead {
  readonly source: string;
  readonly negative: boolean;
}

/**
 * Takes the look-aheads off a pattern that begins with `^` and them: all look from the start of the text, so that each
 * is a pattern of its own. Null where there are none, or where they are of one alternative among several.
 */
export function leadingLookaheads(
  pattern: string,
): { lookaheads: readonly Lookahead[]; rest: string } | null {
  const lookaheads: Lookahead[] = [];
  let at = 1;
  while (/^\(\?[=!]/.test(pattern.slice(at, at + 3))) {
    const end = endOf(pattern, at + 3, ')');
    lookaheads.push({ source: pattern.slice(at + 3, end), negative: pattern[at + 2] === '!' });
    at = end + 1;
  }
  const isWhole = pattern.startsWith('^') && endOf(pattern, at, '|') >= pattern.length;
  return lookaheads.length > 0 && isWhole ? { lookaheads, rest: pattern.slice(at) } : null;
}

/** Where a character stands from `start` on that is in no group, no class and not escaped; the length where it does not. */
function endOf(pattern: string, start: number, char: string): number {
  let open = 0;
  let inClass = false;
  let at = start;
  for (; at < pattern.length; at++) {
    const found = pattern[at]!;
    if (found === char && open === 0 && !inClass) return at;
    if (found === '\\') at++;
    else if (found === '[') inClass = true;
    else if (found === ']') inClass = false;
    else if (found === '(' && !inClass) open++;
    else if (found === ')' && !inClass) open--;
  }
  return at;
}
