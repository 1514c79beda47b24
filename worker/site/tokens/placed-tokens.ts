import type { PromptToken } from '../api/completion-stream.ts';

/** The tokens of one stretch of text: one token, or several that form one character together. */
export interface PlacedTokens {
  /** UTF-16 positions in the text. */
  readonly from: number;
  readonly to: number;
  readonly tokens: readonly PromptToken[];
  /** The run that generated them; absent = none. */
  readonly run?: string;
}

/**
 * Returns the length of the white space before a word. It hangs at the end of a line, where it would be a
 * block of its own.
 */
export const leadOf = (text: string): number => Math.max(0, text.search(/\S/));

/** Finds the place of each token in a text that arrives in parts. */
export class TokenPlacer {
  /** Code points and UTF-16 units so far. */
  #points = 0;
  #units: number;
  /** Tokens whose character is not complete. */
  #open: PromptToken[] = [];

  /** @param start position of the text's first character */
  constructor(start: number) {
    this.#units = start;
  }

  /**
   * Places the tokens of the next part of the text.
   * @param offsets start of each token in code points of the whole text
   */
  place(text: string, tokens: readonly PromptToken[], offsets: readonly number[]): PlacedTokens[] {
    const unitsAt = [this.#units];
    for (const character of text) unitsAt.push(unitsAt.at(-1)! + character.length);
    const positionOf = (offset = Number.POSITIVE_INFINITY) =>
      unitsAt[Math.min(unitsAt.length - 1, Math.max(0, offset - this.#points))]!;
    const placed: PlacedTokens[] = [];
    for (const [index, token] of tokens.entries()) {
      const [from, to] = [positionOf(offsets[index]), positionOf(offsets[index + 1])];
      this.#open.push(token);
      if (from === to) continue;
      placed.push({ from, to, tokens: this.#open });
      this.#open = [];
    }
    this.#points += unitsAt.length - 1;
    this.#units = unitsAt.at(-1)!;
    return placed;
  }
}
