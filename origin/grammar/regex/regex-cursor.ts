import { type CodePoints, codePoints, complementCodePoints, rangesOf } from '../automaton/code-points.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import type { GrammarError } from '../rules/grammar-error.ts';
import { SourceCursor } from '../rules/source-cursor.ts';
import { bothCases, CASELESS_ESCAPES, CLASS_ESCAPES, unicodeProperty } from './character-sets.ts';

/** Maximum repetition count. */
const MAX_COUNT = 1_000_000;

/** Makes the error for an offset of the expression, which may be a part of another source. */
export type ErrorAt = (offset: number, message: string) => GrammarError;

/** Reads the tokens of a regular expression. */
export class RegexCursor extends SourceCursor {
  readonly #errorAt: ErrorAt;

  constructor(source: string, errorAt: ErrorAt) {
    super(source, 'regular expression');
    this.#errorAt = errorAt;
  }

  override error(message: string, offset = this.offset): GrammarError {
    return this.#errorAt(offset, message);
  }

  rest(length: number): string {
    return this.source.slice(this.offset, this.offset + length);
  }

  /** Takes `<name>` of a named group. */
  takeGroupName(): boolean {
    return this.match(/P?<[\p{L}_$][\p{L}\p{N}_$]*>/uy) !== null;
  }

  /** Takes a quantifier. Returns its minimum and maximum, or null if there is none. */
  quantifier(): [number, number] | null {
    if (this.take('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.take('+')) return [1, Number.POSITIVE_INFINITY];
    if (this.take('?')) return [0, 1];
    const counts = this.match(/\{(\d+)(,(\d*))?\}/y);
    if (!counts) return null;
    const min = Number(counts[1]);
    const max =
      counts[2] === undefined ? min : counts[3] === '' ? Number.POSITIVE_INFINITY : Number(counts[3]);
    if (min > MAX_COUNT || (Number.isFinite(max) && max > MAX_COUNT)) {
      throw this.error(`More than ${MAX_COUNT} repetitions`);
    }
    return [min, max];
  }
}

/** Takes an escape that is valid inside and outside of a class. */
export function classEscape(cursor: RegexCursor, budget: WorkBudget, ignoreCase = false): CodePoints {
  const offset = cursor.offset;
  cursor.take('\\');
  const set = (ignoreCase ? CASELESS_ESCAPES : CLASS_ESCAPES)[cursor.peek];
  if (set && cursor.take(cursor.peek)) return set;
  const property = cursor.match(/([pP])\{([^}]*)\}/y);
  if (property) {
    const codePoints = unicodeProperty(property[2]!, budget);
    if (!codePoints) throw cursor.error(`Unknown Unicode property "${property[2]}"`);
    return property[1] === 'P' ? complementCodePoints(codePoints) : codePoints;
  }
  cursor.offset = offset;
  const char = characterEscape(cursor);
  return [char, char];
}

const CONTROL_ESCAPES: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Takes an escape that stands for one character. Expects the backslash. */
function characterEscape(cursor: RegexCursor): number {
  cursor.take('\\');
  const control = CONTROL_ESCAPES[cursor.peek];
  if (control !== undefined && cursor.take(cursor.peek)) return control;
  if (cursor.match(/0(?!\d)/y)) return 0;
  const letter = cursor.match(/c([A-Za-z])/y);
  if (letter) return letter[1]!.charCodeAt(0) % 32;
  const pair = cursor.match(/u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/y);
  if (pair) {
    return 0x10000 + ((hex(pair[1]!) - 0xd800) << 10) + (hex(pair[2]!) - 0xdc00);
  }
  const code = cursor.match(/x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,8})\}/y);
  if (code) return cursor.scalarValue(hex(code[1] ?? code[2] ?? code[3]!));
  if (/[A-Za-z0-9]/.test(cursor.peek)) throw cursor.error(`Unknown escape "\\${cursor.peek}"`);
  return cursor.codePoint();
}

function hex(digits: string): number {
  return Number.parseInt(digits, 16);
}

/**
 * Takes `[…]` or `[^…]`. Expects the opening bracket. An empty class matches nothing. With `ignoreCase`, a
 * negated class excludes both cases of its letters.
 */
export function classMembers(cursor: RegexCursor, budget: WorkBudget, ignoreCase = false): CodePoints {
  cursor.take('[');
  const negated = cursor.take('^');
  const ranges: [number, number][] = [];
  while (!cursor.take(']')) {
    budget.spend(10);
    if (/^\[:\^?[a-z]+:\]/.test(cursor.rest(12))) throw cursor.error('POSIX classes are not supported');
    if (cursor.lookingAt('&&'))
      throw cursor.error('Intersections of classes are not supported; write \\&\\&');
    const low = member(cursor, budget, ignoreCase);
    if (cursor.peek === '-' && cursor.rest(2) !== '-]') {
      cursor.take('-');
      ranges.push(span(cursor, low, member(cursor, budget, ignoreCase)));
    } else {
      ranges.push(...rangesOf(low));
    }
  }
  const members = ignoreCase ? bothCases(codePoints(ranges), budget) : codePoints(ranges);
  return negated ? complementCodePoints(members) : members;
}

function member(cursor: RegexCursor, budget: WorkBudget, ignoreCase: boolean): CodePoints {
  if (cursor.peek !== '\\') {
    const char = cursor.codePoint();
    return [char, char];
  }
  if (cursor.take('\\b')) return [8, 8];
  return classEscape(cursor, budget, ignoreCase);
}

function span(cursor: RegexCursor, low: CodePoints, high: CodePoints): [number, number] {
  const isCharacter = (set: CodePoints): boolean => set.length === 2 && set[0] === set[1];
  if (!isCharacter(low) || !isCharacter(high)) throw cursor.error('A range needs a character on either side');
  if (high[0]! < low[0]!) throw cursor.error('The character range is reversed');
  return [low[0]!, high[0]!];
}
