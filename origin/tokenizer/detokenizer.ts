/**
 * Decodes UTF-8 incrementally: token bytes in, text out, never a broken character.
 *
 * Follows the "maximal subpart" practice of the WHATWG Encoding Standard and Unicode §3.9. Bytes that can never become
 * a character give one U+FFFD at once. An incomplete character (at most 3 bytes) is held back. The text of all pushes
 * plus `end()` equals a TextDecoder's output for the same bytes; how they were split does not matter.
 */
export class Utf8Assembler {
  /** Bytes of the character under construction, as the value they have built so far. */
  #codePoint = 0;
  /** Continuation bytes still missing; 0 = no character under construction. */
  #missing = 0;
  /** Bytes of the character under construction that have been taken. */
  #held = 0;
  /** Range the next continuation byte must lie in (narrower than 80..BF right after E0, ED, F0, F4). */
  #lower = 0x80;
  #upper = 0xbf;

  /** Bytes that wait for the rest of their character, 0..3. */
  get held(): number {
    return this.#held;
  }

  /** Returns the text that `bytes` complete. */
  push(bytes: Uint8Array): string {
    let text = '';
    for (const byte of bytes) text += this.#take(byte);
    return text;
  }

  /** Ends the text: returns '' or one U+FFFD for an unfinished character, and resets. */
  end(): string {
    const unfinished = this.#missing > 0;
    this.#reset();
    return unfinished ? '\ufffd' : '';
  }

  #take(byte: number): string {
    if (this.#missing === 0) return this.#lead(byte);
    if (byte < this.#lower || byte > this.#upper) {
      this.#reset();
      return `\ufffd${this.#lead(byte)}`;
    }
    this.#lower = 0x80;
    this.#upper = 0xbf;
    this.#codePoint = (this.#codePoint << 6) | (byte & 0x3f);
    this.#held += 1;
    this.#missing -= 1;
    if (this.#missing > 0) return '';
    const character = String.fromCodePoint(this.#codePoint);
    this.#reset();
    return character;
  }

  #lead(byte: number): string {
    if (byte < 0x80) return String.fromCharCode(byte);
    if (byte >= 0xc2 && byte <= 0xdf) return this.#begin(byte & 0x1f, 1);
    if (byte >= 0xe0 && byte <= 0xef) {
      if (byte === 0xe0) this.#lower = 0xa0; // shorter forms exist
      if (byte === 0xed) this.#upper = 0x9f; // surrogates
      return this.#begin(byte & 0x0f, 2);
    }
    if (byte >= 0xf0 && byte <= 0xf4) {
      if (byte === 0xf0) this.#lower = 0x90; // shorter forms exist
      if (byte === 0xf4) this.#upper = 0x8f; // beyond U+10FFFF
      return this.#begin(byte & 0x07, 3);
    }
    return '\ufffd';
  }

  #begin(bits: number, missing: number): string {
    this.#codePoint = bits;
    this.#missing = missing;
    this.#held = 1;
    return '';
  }

  #reset(): void {
    this.#codePoint = 0;
    this.#missing = 0;
    this.#held = 0;
    this.#lower = 0x80;
    this.#upper = 0xbf;
  }
}
