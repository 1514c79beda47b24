/**
 * Counts the code points that a sequence of UTF-8 bytes decodes to, without decoding it. Follows the WHATWG
 * UTF-8 decoder: an invalid sequence counts as one U+FFFD.
 */
export class CodePointCounter {
  #completed: number;
  #missing = 0;
  #lower = 0x80;
  #upper = 0xbf;

  constructor(start = 0) {
    this.#completed = start;
  }

  /** Returns the index of the code point that the next byte belongs to; undefined = there is no next byte. */
  positionOf(byte: number | undefined): number {
    const breaksOff = byte !== undefined && this.#missing > 0 && !this.#continues(byte);
    return breaksOff ? this.#completed + 1 : this.#completed;
  }

  push(byte: number): void {
    if (this.#missing === 0) {
      this.#lead(byte);
    } else if (this.#continues(byte)) {
      this.#missing -= 1;
      this.#expect(0x80, 0xbf);
      if (this.#missing === 0) this.#completed += 1;
    } else {
      this.#missing = 0;
      this.#completed += 1;
      this.#lead(byte);
    }
  }

  #continues(byte: number): boolean {
    return byte >= this.#lower && byte <= this.#upper;
  }

  #expect(lower: number, upper: number): void {
    this.#lower = lower;
    this.#upper = upper;
  }

  #lead(byte: number): void {
    // The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
    this.#expect(
      byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80,
      byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf,
    );
    if (byte >= 0xc2 && byte <= 0xdf) this.#missing = 1;
    else if (byte >= 0xe0 && byte <= 0xef) this.#missing = 2;
    else if (byte >= 0xf0 && byte <= 0xf4) this.#missing = 3;
    else this.#completed += 1;
  }
}

/** Returns the number of code points; a surrogate pair is one. */
export function codePointLength(text: string): number {
  let length = text.length;
  for (let index = 0; index < text.length - 1; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0xd800 || unit > 0xdbff) continue;
    const next = text.charCodeAt(index + 1);
    if (next < 0xdc00 || next > 0xdfff) continue;
    length -= 1;
    index += 1;
  }
  return length;
}
