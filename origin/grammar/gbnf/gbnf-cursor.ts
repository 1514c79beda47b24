import { type CodePoints, codePoints, complementCodePoints } from '../automaton/code-points.ts';
import { MAX_TOKEN_ID } from '../automaton/token-path.ts';
import { SourceCursor } from '../rules/source-cursor.ts';

/** Maximum minimum of a repetition, as in llama.cpp, which takes larger maxima as unbounded. */
const MAX_MINIMUM = 2000;
const MAX_REPETITIONS = 5000;

const NAMED_ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
const LITERAL_ESCAPES = '\\"\'[]-';
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** Reads the tokens of GBNF. */
export class GbnfCursor extends SourceCursor {
  constructor(source: string) {
    super(source, 'grammar');
  }

  get atNewline(): boolean {
    return this.peek === '\n' || this.peek === '\r';
  }

  get atName(): boolean {
    return /[A-Za-z0-9_-]/.test(this.peek);
  }

  expect(word: string): void {
    if (!this.take(word)) throw this.error(`Expected "${word}"`);
  }

  /** Skips spaces and comments, and line breaks if `newlines` is true. */
  skipSpace(newlines: boolean): void {
    const space = newlines ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y;
    this.match(space);
  }

  /** Whether the next non-empty line, comments aside, begins with this character. */
  nextLineBeginsWith(char: string): boolean {
    const start = this.offset;
    this.skipSpace(true);
    const isNext = this.peek === char;
    this.offset = start;
    return isNext;
  }

  name(): string {
    const name = this.match(/[A-Za-z0-9_-]+/y);
    if (name === null) throw this.error('Expected a rule name');
    return name[0];
  }

  /** Takes exactly `digits` hexadecimal digits. */
  #hex(digits: number): number {
    const hex = this.source.slice(this.offset, this.offset + digits);
    if (hex.length < digits || !/^[0-9a-fA-F]+$/.test(hex)) {
      throw this.error(`Expected ${digits} hexadecimal digits`);
    }
    this.offset += digits;
    return Number.parseInt(hex, 16);
  }

  /** Takes `{n}`, `{n,}`, `{,m}` or `{n,m}`. */
  counts(newlines: boolean): [number, number] {
    this.expect('{');
    this.skipSpace(newlines);
    const low = this.#digits();
    this.skipSpace(newlines);
    const range = this.take(',');
    this.skipSpace(newlines);
    const high = range ? this.#digits() : low;
    this.skipSpace(newlines);
    if (low === '' && high === '') throw this.error('Expected a number of repetitions');
    const min = Number(low);
    const max = high === '' ? Number.POSITIVE_INFINITY : Number(high);
    if (min > MAX_MINIMUM) throw this.error(`More than ${MAX_MINIMUM} required repetitions`);
    if (high !== '' && max > MAX_REPETITIONS) throw this.error(`More than ${MAX_REPETITIONS} repetitions`);
    if (max < min) throw this.error('The repetition counts are reversed');
    this.expect('}');
    return [min, max];
  }

  /** Takes the id of `<[10]>`; null if a name follows instead. */
  tokenId(): number | null {
    const digits = this.match(/<\[(\d+)\]>/y)?.[1];
    if (digits === undefined) return null;
    if (Number(digits) > MAX_TOKEN_ID) throw this.error(`Token ids are at most ${MAX_TOKEN_ID}`);
    return Number(digits);
  }

  /** Takes `<name>`. The brackets belong to the name. */
  tokenName(): string {
    const match = this.match(/<[^<>\s[\]]+>/y);
    if (match === null) throw this.error('Expected a token, as in <name> or <[10]>');
    return match[0];
  }

  /** Takes zero or more digits. */
  #digits(): string {
    return this.match(/\d*/y)?.[0] ?? '';
  }

  /** Takes a literal in double or single quotes. Expects the opening quote. */
  string(): string {
    const quote = this.peek;
    this.expect(quote);
    let value = '';
    while (!this.take(quote)) value += String.fromCodePoint(this.#character());
    return value;
  }

  /** Takes `[a-z]` or `[^a-z]`. Expects the opening bracket. */
  characterClass(): CodePoints {
    this.expect('[');
    const negated = this.take('^');
    const ranges: [number, number][] = [];
    while (!this.take(']')) {
      const lo = this.#character();
      const isRange = this.peek === '-' && !this.lookingAt('-]');
      if (isRange) this.expect('-');
      const hi = isRange ? this.#character() : lo;
      if (hi < lo) throw this.error('The character range is reversed');
      ranges.push([lo, hi]);
    }
    if (ranges.length === 0) throw this.error('The character class is empty');
    return negated ? complementCodePoints(codePoints(ranges)) : codePoints(ranges);
  }

  /** Takes a character or an escape. Numeric escapes are code points, not bytes. */
  #character(): number {
    const first = this.codePoint();
    if (first !== 0x5c) return first;
    const name = String.fromCodePoint(this.codePoint());
    const digits = HEX_DIGITS[name];
    if (digits !== undefined) return this.scalarValue(this.#hex(digits));
    if (LITERAL_ESCAPES.includes(name)) return name.codePointAt(0)!;
    const named = NAMED_ESCAPES[name];
    if (named === undefined) throw this.error(`Unknown escape "\\${name}"`);
    return named.codePointAt(0)!;
  }
}
