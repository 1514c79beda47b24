/** Signs of characters that are not seen, or look like others. */

/** Spaces, line breaks, controls and characters without width, each of its kind. */
const UNSEEN = '[\\p{Z}\\p{Cc}\\p{Cf}]';

export const IS_UNSEEN = new RegExp(UNSEEN, 'u');

/** All but spaces, tabs and line breaks, which an editor shows by itself. */
export const UNSEEN_IN_LINE = new RegExp(`(?![ \\t\\n])${UNSEEN}`, 'gu');

const SIGNS: Readonly<Record<string, string>> = { ' ': '·', '\t': '→', '\n': '↵', '\u00a0': '⍽' };

/** Returns the sign of a character; its code if it has none, such as `U+200B` for a space without width. */
export const signOf = (character: string): string =>
  SIGNS[character] ?? `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;

/** Splits a text into characters that are not seen, and what is between them. */
export const splitUnseen = (text: string): string[] => text.split(new RegExp(`(${UNSEEN})`, 'u'));
