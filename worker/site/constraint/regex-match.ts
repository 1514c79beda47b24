/**
 * Whether a regular expression matches a whole text, as a constraint does; null if this browser does not know the
 * expression's syntax.
 */
export function matchesWhole(source: string, text: string): boolean | null {
  try {
    return new RegExp(`^(?:${source})$`, 'u').test(text);
  } catch {
    return null;
  }
}
