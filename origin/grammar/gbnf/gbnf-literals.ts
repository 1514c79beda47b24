import { type CodePoints, codePoints, complementCodePoints } from '../automaton/code-points.ts';
import type { GbnfCursor } from './gbnf-cursor.ts';

const NAMED_ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
const LITERAL_ESCAPES = '\\"\'[]-';
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** A literal in double or single quotes; the cursor stands on the opening quote. */
export function quotedText(cursor: GbnfCursor): string {
  const quote = cursor.peek;
  cursor.expect(quote);
  let value = '';
  while (!cursor.take(quote)) value += String.fromCodePoint(character(cursor));
  return value;
}

/** `[a-z]` or `[^a-z]`; the cursor stands on the opening bracket. */
export function characterClass(cursor: GbnfCursor): CodePoints {
  cursor.expect('[');
  const negated = cursor.take('^');
  const ranges: [number, number][] = [];
  while (!cursor.take(']')) {
    const lo = character(cursor);
    const isRange = cursor.peek === '-' && !cursor.lookingAt('-]');
    if (isRange) cursor.expect('-');
    const hi = isRange ? character(cursor) : lo;
    if (hi < lo) throw cursor.error('The character range is reversed');
    ranges.push([lo, hi]);
  }
  if (ranges.length === 0) throw cursor.error('The character class is empty');
  return negated ? complementCodePoints(codePoints(ranges)) : codePoints(ranges);
}

/** A character as it stands, or an escape; escapes by number name code points, not bytes. */
function character(cursor: GbnfCursor): number {
  const first = cursor.character();
  if (first !== 0x5c) return first;
  const name = String.fromCodePoint(cursor.character());
  const digits = HEX_DIGITS[name];
  if (digits !== undefined) {
    const value = cursor.hex(digits);
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
      throw cursor.error('Not a Unicode character');
    return value;
  }
  if (LITERAL_ESCAPES.includes(name)) return name.codePointAt(0)!;
  const named = NAMED_ESCAPES[name];
  if (named === undefined) throw cursor.error(`Unknown escape "\\${name}"`);
  return named.codePointAt(0)!;
}
