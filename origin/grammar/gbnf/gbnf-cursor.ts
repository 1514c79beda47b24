import { type GrammarError, syntaxError } from '../grammar-error.ts';

/** As llama.cpp: larger counts are refused. */
const MAX_REPETITIONS = 2000;

/** Reads the words of GBNF from a source text. */
export class GbnfCursor {
  offset = 0;
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  get atEnd(): boolean {
    return this.offset >= this.#source.length;
  }

  /** The next code unit; '' at the end. */
  get peek(): string {
    return this.#source.charAt(this.offset);
  }

  get atNewline(): boolean {
    return this.peek === '\n' || this.peek === '\r';
  }

  get atName(): boolean {
    return /[A-Za-z0-9_-]/.test(this.peek);
  }

  error(message: string): GrammarError {
    return syntaxError(this.#source, this.offset, message);
  }

  take(word: string): boolean {
    if (!this.lookingAt(word)) return false;
    this.offset += word.length;
    return true;
  }

  lookingAt(word: string): boolean {
    return this.#source.startsWith(word, this.offset);
  }

  expect(word: string): void {
    if (!this.take(word)) throw this.error(`Expected "${word}"`);
  }

  /** Spaces and comments; line breaks too where `newlines` allows them. */
  skipSpace(newlines: boolean): void {
    const space = newlines ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y;
    this.#match(space);
  }

  /** True before a line break when the first thing after it, comments aside, is this character. */
  nextLineBeginsWith(char: string): boolean {
    const start = this.offset;
    this.skipSpace(true);
    const found = this.peek === char;
    this.offset = start;
    return found;
  }

  name(): string {
    const name = this.#match(/[A-Za-z0-9_-]+/y);
    if (name === '') throw this.error('Expected a rule name');
    return name;
  }

  /** A whole code point, surrogate pairs together; a lone surrogate is refused. */
  character(): number {
    const codePoint = this.#source.codePointAt(this.offset);
    if (codePoint === undefined) throw this.error('Unexpected end of the grammar');
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) throw this.error('Lone surrogate');
    this.offset += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  /** Exactly so many hexadecimal digits. */
  hex(digits: number): number {
    const found = this.#source.slice(this.offset, this.offset + digits);
    if (found.length < digits || !/^[0-9a-fA-F]+$/.test(found)) {
      throw this.error(`Expected ${digits} hexadecimal digits`);
    }
    this.offset += digits;
    return Number.parseInt(found, 16);
  }

  /** `{n}`, `{n,}`, `{,m}` or `{n,m}` */
  counts(newlines: boolean): [number, number] {
    this.expect('{');
    this.skipSpace(newlines);
    const low = this.#match(/\d*/y);
    this.skipSpace(newlines);
    const range = this.take(',');
    this.skipSpace(newlines);
    const high = range ? this.#match(/\d*/y) : low;
    this.skipSpace(newlines);
    if (low === '' && high === '') throw this.error('Expected a number of repetitions');
    const min = Number(low);
    const max = high === '' ? Number.POSITIVE_INFINITY : Number(high);
    if (min > MAX_REPETITIONS || (high !== '' && max > MAX_REPETITIONS)) {
      throw this.error(`More than ${MAX_REPETITIONS} repetitions`);
    }
    if (max < min) throw this.error('The repetition counts are reversed');
    this.expect('}');
    return [min, max];
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.#source)?.[0] ?? '';
    this.offset += found.length;
    return found;
  }
}
