import { type GrammarError, syntaxError } from './grammar-error.ts';

/** A place in a source text that is read from left to right, in UTF-16 code units. */
export class SourceCursor {
  offset = 0;
  protected readonly source: string;
  readonly #sourceName: string;

  /** @param what what the text is, for the message when it ends too early: `grammar`, `regular expression` */
  constructor(source: string, what: string) {
    this.source = source;
    this.#sourceName = what;
  }

  get atEnd(): boolean {
    return this.offset >= this.source.length;
  }

  /** The next code unit; '' at the end. */
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

  /** Takes what a sticky pattern finds here. */
  match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.source);
    if (found) this.offset += found[0].length;
    return found;
  }

  /** Checks that an escape names a Unicode scalar value; what is wrong stands before the cursor. */
  scalarValue(value: number): number {
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) throw this.error('Not a Unicode character');
    return value;
  }

  /** A whole code point, surrogate pairs together; a lone surrogate is refused, because text cannot contain it. */
  codePoint(): number {
    const codePoint = this.source.codePointAt(this.offset);
    if (codePoint === undefined) throw this.error(`Unexpected end of the ${this.#sourceName}`);
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) throw this.error('Lone surrogate');
    this.offset += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }
}
