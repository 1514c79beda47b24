import { bytesOfUnits, unitsOf, utf8Of } from '@continuo/shared/binary-text.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { canonical, parseExactJson } from '../rules/exact-json.ts';
import { DEAD, type StateTable } from './state-table.ts';

/** A place in a text of a grammar with arrays whose items must differ, or objects whose keys must. */
export interface TextPosition {
  readonly state: number;
  /** The innermost level. */
  readonly level: Level;
}

/** An open array or object. Texts have one code unit per byte, and no space between tokens. */
interface Level {
  readonly outer: Level | null;
  /** The values of items, or of the keys of an object, that must differ; null if they need not. */
  readonly finished: readonly string[] | null;
  /** The text up to the last comma, and since then. */
  readonly before: string;
  readonly item: string;
  /** Whether the item, or the key of the member, is complete. */
  readonly isComplete: boolean;
  readonly token: 'none' | 'string' | 'escape' | 'scalar';
}

const NOTHING_BEGUN = { item: '', isComplete: false, token: 'none' } as const;

/** The level outside of such arrays and objects. */
export const OUTSIDE: Level = { ...NOTHING_BEGUN, outer: null, finished: null, before: '' };

/** Returns the position after a byte; null if no text without a repeated item has it. */
export function nextPosition(
  table: StateTable,
  { state, level }: TextPosition,
  byte: number,
  budget: WorkBudget,
): TextPosition | null {
  const next = table.next(state, byte, budget);
  if (next === DEAD) return null;
  const after = afterChar(level, String.fromCharCode(byte), () => table.beginsDistinct(state, next));
  return after && { state: next, level: after };
}

/** The level after one more character of a JSON text; null if the text repeats an item. */
function afterChar(level: Level, char: string, isDistinct: () => boolean): Level | null {
  if (level === OUTSIDE && !(/[[{]/.test(char) && isDistinct())) return level;
  const longer = { ...level, item: level.item + char };
  if (level.token === 'escape') return { ...longer, token: 'string' };
  if (level.token === 'string') {
    if (char === '\\') return { ...longer, token: 'escape' };
    return char === '"' ? completed(longer) : longer;
  }
  if (level.token === 'scalar') {
    if (!/[\s,\]}]/.test(char)) return longer;
    const ended = completed(level);
    return ended && afterChar(ended, char, isDistinct);
  }
  if (/\s/.test(char)) return level;
  if (char === ':') return longer;
  if (char === ',') return { ...level, ...NOTHING_BEGUN, before: level.before + longer.item };
  if (/[[{]/.test(char))
    return { ...NOTHING_BEGUN, outer: level, finished: isDistinct() ? [] : null, before: char };
  if (!/[\]}]/.test(char)) return { ...longer, token: char === '"' ? 'string' : 'scalar' };
  const outer = level.outer!;
  return outer === OUTSIDE ? outer : completed({ ...outer, item: outer.item + level.before + longer.item });
}

/** The level after the end of a value; null if it repeats an item. */
function completed(level: Level): Level | null {
  const complete: Level = { ...level, isComplete: true, token: 'none' };
  if (level.isComplete || level.finished === null) return complete;
  const value = canonicalOf(level.item);
  return level.finished.includes(value) ? null : { ...complete, finished: [...level.finished, value] };
}

const utf8Units = (text: string): string => unitsOf(new TextEncoder().encode(text));

/** Equal for equal JSON values. */
function canonicalOf(text: string): string {
  // Most items are strings without escapes.
  if (/^"[^\\]*$/.test(text)) return text;
  return utf8Units(canonical(parseExactJson(utf8Of(bytesOfUnits(text)))));
}

/**
 * Whether the items that have begun may still become equal to finished ones: these have all words of them. If
 * some continuation repeats an item, they may.
 */
export function mayRepeat(level: Level): boolean {
  let begun = '';
  for (let at: Level | null = level; at !== null; at = at.outer) {
    begun = at.item + begun;
    const words = at.finished?.length ? wordsOf(begun) : [];
    const hasWord = (value: string, word: string) =>
      (/^\d/.test(word) ? value.replaceAll('.', '') : value).includes(word);
    const mayEqual = (value: string) => words.every((word) => hasWord(value, word));
    if (at.finished?.some(mayEqual)) return true;
    begun = at.before + begun;
  }
  return false;
}

/** The last word may be incomplete. */
const WORDS = /"(?:[^"\\]|\\.)*(?:"|\\?$)|[^,:[\]{}"]+/gs;
/** At the end of a text, also the first half of a surrogate pair. */
const INCOMPLETE_ESCAPE = /(?:\\ud[89ab][\da-f]{2})?(?:\\(?:u[\da-f]{0,3})?)?$/i;
const ESCAPES = /(?:\\(?:u[\da-f]{4}|[^u]))+/gi;

/** Strings and scalars of a text as values have them. Of numbers, only the digits without outer zeros. */
const wordsOf = (text: string): string[] =>
  (text.match(WORDS) ?? []).map((word) => {
    if (/^[-\d]/.test(word)) return word.replace(/e.*|\./gi, '').replace(/^[-0]+|0+$/g, '');
    const bytes = (run: string) => utf8Units(JSON.stringify(JSON.parse(`"${run}"`)));
    const whole = word.replace(INCOMPLETE_ESCAPE, '');
    return whole.replace(ESCAPES, (run) => bytes(run).slice(1, -1));
  });
