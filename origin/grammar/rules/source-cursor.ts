import { type GrammarError, syntaxError } from './grammar-error.ts';

/** A read position in a source text, in UTF-16 code units. */
export class SourceCursor {
  offset = 0;
  protected readonly source: string;
  readonly #sourceName: string;

  /** @param what what the source is, for the error at its end: `grammar`, `regular expression` */
  constructor(source: string, what: string) {
    this.source = source;
    this.#sourceName = what;
  }

  get atEnd(): boolean {
    return this.offset >= this.source.length;
  }

  /** The next code unit, or '' at the end. */
  get peek(): string {
    return this.source.charAt(this.offset);
  }

  error(message: string): GrammarError {
    return syntaxError(this.source, this.offset, message);
  }

  lookingAt(word: string): boolean {
    return this.source.startsWith(word, this.offset);
  }

  take(word: string): boolean {
    if (!this.lookingAt(word)) return false;
    this.offset += word.length;
    return true;
  }

  /** Matches a sticky pattern here and moves behind the match. */
  match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.offset;
    const match = pattern.exec(this.source);
    if (match) this.offset += match[0].length;
    return match;
  }

  /**
   * Returns the value of an escape that was just read.
   * @throws GrammarError if it is not a Unicode scalar value
   */
  scalarValue(value: number): number {
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
      throw this.error('The escape is not a Unicode scalar value');
    return value;
  }

  /**
   * Takes one code point.
   * @throws GrammarError at the end, and for a lone surrogate, which UTF-8 cannot encode
   */
  codePoint(): number {
    const codePoint = this.source.codePointAt(this.offset);
    if (codePoint === undefined) throw this.error(`Unexpected end of the ${this.#sourceName}`);
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) throw this.error('A lone surrogate cannot be encoded');
    this.offset += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }
}
