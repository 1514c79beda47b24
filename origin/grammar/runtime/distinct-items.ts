import { canonical, parseExactJson } from '../rules/exact-json.ts';

/** An array or object that is open at the end of a text. */
interface Level {
  readonly outer: Level | null;
  readonly isObject: boolean;
  /** The items of an array or the keys of an object that must differ, and null if they need not. */
  readonly seen: readonly Item[] | null;
  /** Offset at which the last item begins; -1 if none has begun since the last comma. */
  readonly itemStart: number;
  readonly isItemComplete: boolean;
}

/** A key, or a value of an array. It is read when it is first compared. */
export class Item {
  readonly #text: string;
  #canonical: string | null = null;
  #tokens: readonly string[] | null = null;

  /** @param text one code unit per byte */
  constructor(text: string) {
    this.#text = text;
  }

  get canonical(): string {
    return (this.#canonical ??= canonicalBytes(this.#text));
  }

  /** Whether it may be a string that begins with a byte of ASCII. */
  mayBeginWith(byte: number): boolean {
    return this.#text[0] === '"' && (this.#text.charCodeAt(1) === byte || this.#text[1] === '\\');
  }

  /**
   * Whether it has all strings and scalars of the beginning of an item. Of numbers, only the digits count. If
   * some end of the beginning is equal to this item, it has.
   */
  hasBeginningOf(begun: string): boolean {
    this.#tokens ??= tokensOf(this.#text);
    return tokensOf(begun).every((token) =>
      this.#tokens!.some((text) => text.padEnd(token.length, '0').startsWith(token)),
    );
  }
}

/**
 * Strings without escapes, the digits of numbers after a #, and other scalars. The last one may be
 * incomplete.
 */
const tokensOf = (text: string): string[] =>
  (text.match(/"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s,:[\]{}"]+/gs) ?? []).map((token) => {
    if (/^[-\d]/.test(token)) return `#${token.replace(/e.*/i, '').replace(/^[-0.]+|[.]/g, '')}`;
    if (!token.includes('\\')) return token;
    const utf8 = (escapes: string) => Buffer.from(JSON.parse(`"${escapes}"`)).toString('latin1');
    return token.replace(INCOMPLETE_ESCAPE, '').replace(ESCAPES, utf8);
  });

/** At the end of a text, also the first half of a surrogate pair. */
const INCOMPLETE_ESCAPE = /(?:\\ud[89ab][\da-f]{2})?(?:\\(?:u[\da-f]{0,3})?)?$/i;
const ESCAPES = /(?:\\(?:u[\da-f]{4}|[^u]))+/gi;

function canonicalBytes(text: string): string {
  // Most items are strings without escapes.
  if (/^"[^\\]*$/.test(text)) return text;
  const value = parseExactJson(Buffer.from(text, 'latin1').toString());
  return Buffer.from(canonical(value)).toString('latin1');
}

type Token = 'none' | 'string' | 'escape' | 'scalar';

/**
 * Where a text stands within an array or object whose items must differ. Offsets count from the last comma of
 * the outermost one.
 */
export interface ItemPosition {
  readonly level: Level;
  readonly token: Token;
}

/** The bytes of a text from an offset, one code unit per byte. */
export type TextFrom = (offset: number) => string;

/** The text is no prefix of an array or object whose items differ. */
export const REPEATED = Symbol('repeated');

/** The position after the bracket or brace that opens such an array or object outside of others. */
export const outermost = (isObject: boolean): ItemPosition => ({
  level: opened(null, isObject, true),
  token: 'none',
});

function opened(outer: Level | null, isObject: boolean, isDistinct: boolean): Level {
  return { outer, isObject, seen: isDistinct ? [] : null, itemStart: -1, isItemComplete: false };
}

/**
 * Returns the position after one more byte of a valid JSON text, null after the end of the outermost array or
 * object.
 * @param offset of the byte
 * @param isDistinct whether a bracket or brace opens an array or object whose items must differ
 */
export function afterByte(
  position: ItemPosition,
  byte: number,
  offset: number,
  textFrom: TextFrom,
  isDistinct: () => boolean,
): ItemPosition | typeof REPEATED | null {
  const { level, token } = position;
  const char = String.fromCharCode(byte);
  if (token === 'escape') return { level, token: 'string' };
  if (token === 'string') {
    if (char === '\\') return { level, token: 'escape' };
    return char === '"' ? afterValue(level, offset + 1, textFrom) : position;
  }
  if (token === 'scalar') {
    if (!/[\s,\]}]/.test(char)) return position;
    const ended = afterValue(level, offset, textFrom);
    return ended === REPEATED ? ended : afterByte(ended, byte, offset, textFrom, isDistinct);
  }
  if (/[\s:]/.test(char)) return position;
  if (char === ',') return { level: { ...level, itemStart: -1, isItemComplete: false }, token };
  if (char === ']' || char === '}')
    return level.outer === null ? null : afterValue(level.outer, offset + 1, textFrom);
  const begun = level.itemStart !== -1 ? level : { ...level, itemStart: offset };
  if (char === '"') return { level: begun, token: 'string' };
  if (char === '[') return { level: opened(begun, false, isDistinct()), token };
  return char === '{'
    ? { level: opened(begun, true, isDistinct()), token }
    : { level: begun, token: 'scalar' };
}

function afterValue(level: Level, end: number, textFrom: TextFrom): ItemPosition | typeof REPEATED {
  // The value of a key.
  if (level.isItemComplete) return { level, token: 'none' };
  const complete = { ...level, isItemComplete: true };
  if (level.seen === null) return { level: complete, token: 'none' };
  const item = new Item(textFrom(level.itemStart).slice(0, end - level.itemStart));
  if (level.seen.some((earlier) => earlier.canonical === item.canonical)) return REPEATED;
  return { level: { ...complete, seen: [...level.seen, item] }, token: 'none' };
}

/**
 * Whether every continuation might repeat an item: an item is due, has just ended, or begins like an earlier
 * one. Otherwise its completion is new.
 */
export function mayOnlyRepeat({ level, token }: ItemPosition, textFrom: TextFrom): boolean {
  for (let at: Level | null = level; at !== null; at = at.outer) {
    if (at.seen === null || at.seen.length === 0) continue;
    // What precedes a value of an object decides whether the object can go on.
    if (at.isItemComplete && (at !== level || token !== 'none')) continue;
    if (at.itemStart === -1 || at.isItemComplete) return true;
    const begun = textFrom(at.itemStart);
    if (at.seen.some((item) => item.hasBeginningOf(begun))) return true;
  }
  return false;
}
