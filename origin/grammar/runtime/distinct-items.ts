import { canonical } from '../canonical.ts';

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

/** A key, or a value of an array with its scalars and keys. */
interface Item {
  readonly canonical: string;
  readonly scalars: readonly unknown[];
}

type Token = 'none' | 'string' | 'escape' | 'scalar';

/** Where a text stands within an array or object whose items must differ. Offsets count from its bracket. */
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
 * Returns the position after one more byte of a valid JSON text, null after the end of the outermost array or object.
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
  const bytes = textFrom(level.itemStart);
  const value: unknown = JSON.parse(decoded(bytes.slice(0, end - level.itemStart)));
  const text = canonical(value);
  if (level.seen.some((item) => item.canonical === text)) return REPEATED;
  const seen = [...level.seen, { canonical: text, scalars: scalarsOf(value) }];
  return { level: { ...complete, seen }, token: 'none' };
}

const decoded = (bytes: string): string => Buffer.from(bytes, 'latin1').toString();

function scalarsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(scalarsOf);
  if (typeof value !== 'object' || value === null) return [value];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...scalarsOf(inner)]);
}

/**
 * Whether every continuation might repeat an item: an item is due, has just ended, or begins like an earlier one. Otherwise
 * its completion is new.
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
  readonly complete: readonly unknown[];
  /** How the one that is not complete begins: a string as its value, others as text. Null if there is none. */
  readonly open: { readonly isString: boolean; readonly text: string } | null;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|".*|[^\s,:[\]{}"]+/gs;
/** The whole characters and escapes of an unfinished string, in Latin-1. */
const WHOLE_CHARACTERS =
  /^"(?:[^"\\\x80-\xff]|\\(?:[^u]|u[\da-fA-F]{4})|[\xc0-\xff][\x80-\xbf]+(?=[^\x80-\xbf]))*/s;

function scalarsBegun(text: string, token: Token): ScalarsBegun {
  const found = text.match(TOKENS) ?? [];
  const last = token === 'none' ? undefined : found.pop();
  const complete = found.map((one): unknown => JSON.parse(decoded(one)));
  if (last === undefined) return { complete, open: null };
  const isString = last[0] === '"';
  const start = (): string => JSON.parse(`${decoded(WHOLE_CHARACTERS.exec(last)![0])}"`) as string;
  return { complete, open: { isString, text: isString ? start() : last } };
}

/** Whether an item has these keys and scalars. If a text can become equal to the item, it does. */
function hasScalars({ scalars }: Item, { complete, open }: ScalarsBegun): boolean {
  if (!complete.every((one) => scalars.includes(one))) return false;
  if (open === null) return true;
  const isNumber = !open.isString && /[-\d]/.test(open.text);
  return scalars.some((value) => {
    if (isNumber) return typeof value === 'number';
    return (typeof value === 'string') === open.isString && String(value).startsWith(open.text);
  });
}
