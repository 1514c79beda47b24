import { canonical } from '../rules/canonical.ts';
import { isJsonNumber } from '../rules/decimal.ts';
import { parseExactJson } from '../rules/exact-json.ts';

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
  #scalars: readonly string[] | null = null;

  /** @param text one code unit per byte */
  constructor(text: string) {
    this.#text = text;
  }

  get canonical(): string {
    return (this.#canonical ??= canonical(parseExactJson(decoded(this.#text))));
  }

  /** Whether it may be a string that begins with a byte of ASCII. */
  mayBeginWith(byte: number): boolean {
    return this.#text[0] === '"' && (this.#text.charCodeAt(1) === byte || this.#text[1] === '\\');
  }

  /** Its scalars and keys; see `scalarText`. */
  get scalars(): readonly string[] {
    return (this.#scalars ??= scalarsOf(parseExactJson(decoded(this.#text))));
  }
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
  if (level.seen.some((other) => other.canonical === item.canonical)) return REPEATED;
  return { level: { ...complete, seen: [...level.seen, item] }, token: 'none' };
}

/** The UTF-8 of a text, one code unit per byte. */
const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');
const decoded = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

/** A string after a quotation mark, or the JSON text of another scalar. */
const scalarText = (value: unknown): string => (typeof value === 'string' ? `"${value}` : canonical(value));

function scalarsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(scalarsOf);
  if (typeof value !== 'object' || value === null || isJsonNumber(value)) return [scalarText(value)];
  return Object.entries(value).flatMap(([key, inner]) => [scalarText(key), ...scalarsOf(inner)]);
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
    const begun = scalarsBegun(textFrom(at.itemStart), token);
    if (at.seen.some((item) => hasScalars(item, begun))) return true;
  }
  return false;
}

/** The keys and scalars of the beginning of an item. */
interface ScalarsBegun {
  readonly complete: readonly string[];
  /**
   * How the one that is not complete begins: its text, and of a string further bytes. Null if there is none.
   */
  readonly open: { readonly text: string; readonly bytes: string } | null;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|".*|[^\s,:[\]{}"]+/gs;
/** The whole characters and escapes of an unfinished string, in Latin-1. */
const WHOLE_CHARACTERS =
  /^"(?:[^"\\\x80-\xff]|\\(?:[^u]|u[\da-fA-F]{4})|[\xc0-\xff][\x80-\xbf]+(?=[^\x80-\xbf]))*/s;

function scalarsBegun(text: string, token: Token): ScalarsBegun {
  const found = text.match(TOKENS) ?? [];
  const last = token === 'none' ? undefined : found.pop();
  const complete = found.map((one) => scalarText(parseExactJson(decoded(one))));
  if (last === undefined) return { complete, open: null };
  if (last[0] !== '"') return { complete, open: { text: last, bytes: '' } };
  const [whole] = WHOLE_CHARACTERS.exec(last)!;
  const rest = last.slice(whole.length);
  const begun = scalarText(JSON.parse(`${decoded(whole)}"`));
  return { complete, open: { text: begun, bytes: rest[0] === '\\' ? '' : rest } };
}

/** Whether an item has these keys and scalars. If a text can become equal to the item, it does. */
function hasScalars({ scalars }: Item, { complete, open }: ScalarsBegun): boolean {
  if (!complete.every((one) => scalars.includes(one))) return false;
  if (open === null) return true;
  const isNumber = NUMERIC.test(open.text);
  return scalars.some((value) => {
    if (isNumber) return NUMERIC.test(value) && mayBecome(open.text, value);
    if (!value.startsWith(open.text)) return false;
    return open.bytes === '' || bytesOf(value.slice(open.text.length)).startsWith(open.bytes);
  });
}

const NUMERIC = /^[-\d]/;

/** Whether the beginning of a number has the digits and the sign of a value, wherever its point is. */
function mayBecome(begun: string, value: string): boolean {
  const digits = significantDigits(begun);
  const hasSign = value === '0' || (begun[0] === '-') === (value[0] === '-');
  return hasSign && significantDigits(value).padEnd(digits.length, '0').startsWith(digits);
}

const significantDigits = (number: string): string =>
  number.replace(/e.*/i, '').replaceAll(/[-.]/g, '').replace(/^0+/, '');
