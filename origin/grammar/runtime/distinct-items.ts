import { bytesOfUnits, unitsOf, utf8Of } from '@continuo/shared/binary-text.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { canonical, parseExactJson } from '../rules/exact-json.ts';
import { DEAD, type StateTable } from './state-table.ts';
import type { TrieWalk } from './trie-walk.ts';

/** A place in a text of a grammar with arrays whose items must differ, or objects whose keys must. */
export interface TextPosition {
  readonly state: number;
  readonly level: Level;
}

/** The innermost open array or object. Texts have one code unit per byte, and no space between tokens. */
interface Level {
  readonly outer: Level | null;
  /** The items, or the keys of an object, that must differ; null if they need not. */
  readonly finished: Finished | null;
  /** The text up to the last comma, and since then. */
  readonly before: string;
  readonly item: string;
  /** Whether the item, or the key of the member, is complete. */
  readonly isComplete: boolean;
  readonly token: 'none' | 'string' | 'escape' | 'scalar';
  /** Set when `mayRepeat` has found that no continuation of the item, or of outer ones, repeats one. */
  isNew: boolean;
}

/** The last finished item. The one before the first has no value. */
interface Finished {
  readonly value: string;
  readonly earlier: Finished | null;
  /** A beginning that neither this value nor an earlier one has, as far as it was looked for. */
  unlike: string | null;
}

const NOTHING_BEGUN = { item: '', isComplete: false, token: 'none' } as const;

/** The level outside of such arrays and objects. */
export const OUTSIDE: Level = { ...NOTHING_BEGUN, outer: null, finished: null, before: '', isNew: true };

/** Returns the position after a byte; null if no text without a repeated item has it. */
export function nextPosition(table: StateTable, from: TextPosition, byte: number, budget: WorkBudget) {
  const state = table.next(from.state, byte, budget);
  if (state === DEAD) return null;
  const char = String.fromCharCode(byte);
  const isDistinct = (char === '[' || char === '{') && table.beginsDistinct(from.state, state);
  const level = from.level === OUTSIDE && !isDistinct ? OUTSIDE : afterChar(from.level, char, isDistinct);
  return level && { state, level };
}

/** The level after one more character of a JSON text; null if the text repeats an item. */
function afterChar(level: Level, char: string, isDistinct: boolean): Level | null {
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
  if (char === ',') {
    // A new item stays so while parts of it follow, which need not differ themselves.
    const isNew = level.finished === null && level.isNew;
    return { ...level, ...NOTHING_BEGUN, before: level.before + longer.item, isNew };
  }
  if (/[[{]/.test(char)) {
    const finished = isDistinct ? { value: '', earlier: null, unlike: null } : null;
    return { ...NOTHING_BEGUN, outer: level, finished, before: char, isNew: level.isNew };
  }
  if (!/[\]}]/.test(char)) return { ...longer, token: char === '"' ? 'string' : 'scalar' };
  const outer = level.outer!;
  return outer === OUTSIDE ? outer : completed({ ...outer, item: outer.item + level.before + longer.item });
}

/** The level after the end of a value; null if it repeats an item. */
function completed(level: Level): Level | null {
  const complete: Level = { ...level, isComplete: true, token: 'none' };
  if (level.isComplete || level.finished === null) return complete;
  const value = canonicalOf(level.item);
  for (let item: Finished = level.finished; item.earlier && !level.isNew; item = item.earlier)
    if (item.value === value) return null;
  return { ...complete, finished: { value, earlier: level.finished, unlike: null }, isNew: false };
}

/** Equal for equal JSON values. */
function canonicalOf(text: string): string {
  // Most items are strings without escapes.
  if (/^"[^\\]*$/.test(text)) return text;
  return unitsOf(new TextEncoder().encode(canonical(parseExactJson(utf8Of(bytesOfUnits(text))))));
}

/**
 * Whether the items that have begun may still become equal to finished ones: these have all words of them. If
 * some continuation repeats an item, they may.
 */
export function mayRepeat(level: Level): boolean {
  if (level.isNew) return false;
  let begun = '';
  for (let at: Level | null = level; at !== null; at = at.outer) {
    begun = at.item + begun;
    const words = at.finished?.earlier ? wordsOf(begun) : [];
    const isNumber = words.map((word) => /^\d/.test(word));
    const mayEqual = (value: string) =>
      words.every((word, i) => (isNumber[i] ? value.replaceAll('.', '') : value).includes(word));
    for (let item = at.finished; item?.earlier && item.unlike !== begun; item = item.earlier)
      if (mayEqual(item.value)) return true;
    if (at.finished?.earlier) at.finished.earlier.unlike = begun;
    begun = at.before + begun;
  }
  level.isNew = true;
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
    const whole = word.replace(INCOMPLETE_ESCAPE, '');
    return whole.replace(ESCAPES, (run) => canonicalOf(`"${run}"`).slice(1, -1));
  });

/** Units of a filter of a mask or of a search beside those of the parser; about 30 ms. */
const MAX_UNITS = 3_000_000;
const UNITS_PER_NODE = 2;
/** If a search for a continuation tries more bytes, or finds so long a text, there probably is one. */
const MAX_TRIED = 100_000;
const MAX_LENGTH = 1000;
const CLOSING = 0x5d;
/** The order in which a search tries bytes: what closes, then what differs soon. */
const FIRST_BYTES = new TextEncoder().encode(']}",:123456789abcdefghijklmnopqrstuvwxyz');
const SEARCH_ORDER = [...new Set([...FIRST_BYTES, ...Array(256).keys()])];

/**
 * Returns a function that says whether the items of a position are new when they are complete, or those of
 * some continuation are.
 */
export function searchOf(table: StateTable, budget: WorkBudget, piece = budget.piece(MAX_UNITS)) {
  let tried = 0;
  const continues = (position: TextPosition, length: number): boolean => {
    for (const byte of SEARCH_ORDER) {
      if (++tried > MAX_TRIED || length > MAX_LENGTH) return true;
      piece.spend(1);
      const after = nextPosition(table, position, byte, budget);
      // Space between tokens is not needed, except for the second half of a line break.
      if (after === null || (after.level === position.level && length > 0)) continue;
      if (!mayRepeat(after.level) || continues(after, length + 1)) return true;
    }
    return false;
  };
  return ({ state, level }: TextPosition): boolean => {
    tried = 0;
    const mayEnd = level.isComplete && level.outer === OUTSIDE;
    if (mayEnd && table.next(state, CLOSING, budget) !== DEAD) return true;
    return !mayRepeat(level) || continues({ state, level }, 0);
  };
}

/** Returns the tokens that would repeat an item or a key, or leave no other continuation. */
export function repetitions(walk: TrieWalk, table: StateTable, start: TextPosition, budget: WorkBudget) {
  const { nodes, subtreeEnds, quotes, brackets, tokens } = walk.trie;
  const piece = budget.piece(MAX_UNITS);
  const goesOn = searchOf(table, budget, piece);
  const repeating = walk.emptyMask();
  mayRepeat(start.level);
  const path = [start];
  for (let node = 0; node < nodes.length; ) {
    const byte = nodes[node]! & 255;
    const depth = nodes[node]! >> 8;
    const end = subtreeEnds[node]!;
    const { level, state } = path[depth]!;
    // In a part of a new item, and outside, only brackets can do harm; in a new string, only quotes.
    const ends = level.finished === null ? brackets : quotes;
    const isSafe = level.isNew && (level.finished === null || level.token === 'string');
    const next = isSafe && ends[end] === ends[node] ? DEAD : table.next(state, byte, budget);
    // A new string that ends with the token may end the array.
    const mayEnd = isSafe && end === node + 1 && level.outer === OUTSIDE;
    if (next === DEAD || (mayEnd && table.next(next, CLOSING, budget) !== DEAD)) {
      node = end;
      continue;
    }
    piece.spend(UNITS_PER_NODE);
    const after = nextPosition(table, path[depth]!, byte, budget);
    if (after !== null && goesOn(after)) {
      path[depth + 1] = after;
      node++;
    } else for (; node < end; node++) repeating[tokens[node]! >>> 5]! |= 1 << (tokens[node]! & 31);
  }
  return walk.finish(repeating);
}
