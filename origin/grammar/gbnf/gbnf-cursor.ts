import { SourceCursor } from '../source-cursor.ts';

/** As llama.cpp: larger counts are refused. */
const MAX_REPETITIONS = 2000;

/** Reads the words of GBNF from a source text. */
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

  /** Spaces and comments; line breaks too where `newlines` allows them. */
  skipSpace(newlines: boolean): void {
    const space = newlines ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y;
    this.match(space);
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
    const name = this.match(/[A-Za-z0-9_-]+/y);
    if (name === null) throw this.error('Expected a rule name');
    return name[0];
  }

  /** Exactly so many hexadecimal digits. */
  hex(digits: number): number {
    const found = this.source.slice(this.offset, this.offset + digits);
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
    const low = this.#digits();
    this.skipSpace(newlines);
    const range = this.take(',');
    this.skipSpace(newlines);
    const high = range ? this.#digits() : low;
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

  /** As many digits as stand here, maybe none. */
  #digits(): string {
    return this.match(/\d*/y)?.[0] ?? '';
  }
}
