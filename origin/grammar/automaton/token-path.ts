import { type BytePath, digitRanges } from './byte-paths.ts';
import { bytesOf, type TokenBytes } from './token-bytes.ts';

/**
 * References to tokens as byte sequences, so that an automaton over bytes can read them. An id is BY_ID and
 * three bytes, big-endian. A name is BY_NAME, the name and BY_ID. Neither first byte occurs in UTF-8.
 */
export const BY_ID = 0xff;
export const BY_NAME = 0xfe;
/** The largest id that a grammar can refer to. */
export const MAX_TOKEN_ID = 0xffffff;

export function pathOfName(name: string): Uint8Array {
  return Uint8Array.of(BY_NAME, ...new TextEncoder().encode(name), BY_ID);
}

/** The paths of an inclusive range of ids. */
export function pathsOfIds(lo: number, hi: number): BytePath[] {
  return digitRanges(lo, hi, 256, 3).map((digits) => [[BY_ID, BY_ID], ...digits]);
}

/**
 * The paths by which a grammar may reach a token: as text, by id, and by name for special tokens and names in
 * `<…>`.
 */
export function pathsOfToken(tokens: TokenBytes, id: number): Uint8Array[] {
  const text = bytesOf(tokens, id);
  const isText = tokens.special[id] === 0 && text.length > 0 && !text.some((byte) => byte >= BY_NAME);
  return [
    ...(isText ? [text] : []),
    Uint8Array.of(BY_ID, id >>> 16, (id >>> 8) & 255, id & 255),
    ...(isNamed(tokens, id) ? [Uint8Array.of(BY_NAME, ...text, BY_ID)] : []),
  ];
}

/** Whether a grammar may refer to the token by name: special tokens, and others written `<…>`. */
export function isNamed(tokens: TokenBytes, id: number): boolean {
  const text = bytesOf(tokens, id);
  return tokens.special[id] === 1 || (text.length > 2 && text[0] === 0x3c && text.at(-1) === 0x3e);
}
