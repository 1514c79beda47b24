import type { WorkBudget } from '../automaton/work-budget.ts';
import { mayRepeat, nextPosition, OUTSIDE, type TextPosition } from './distinct-items.ts';
import { DEAD, type StateTable } from './state-table.ts';
import type { TrieWalk } from './trie-walk.ts';

/** Units of a filter of a mask or of a search beside those of the parser; about 30 ms. */
const MAX_UNITS = 3_000_000;
/** If a search for a continuation needs more steps, there probably is one. */
const MAX_SEARCH_STEPS = 100_000;
/** A step of a filter takes about 200 ns, and one of a search about 1 µs. */
const FILTER_UNITS = 20;
const SEARCH_UNITS = 100;
const CLOSING = 0x5d;
/** The order in which a search tries bytes: what closes, then what differs soon. */
const FIRST_BYTES = new TextEncoder().encode(']}",:123456789abcdefghijklmnopqrstuvwxyz');
const SEARCH_ORDER = [...new Set([...FIRST_BYTES, ...Array(256).keys()])];

/**
 * Returns a function that says whether the items of a position are new when they are complete, or those of
 * some continuation are.
 */
export function searchOf(table: StateTable, budget: WorkBudget, piece = budget.piece(MAX_UNITS), known = 0) {
  /** By the state before an item: a beginning that no known item has. */
  const beginnings = new Map<number, string>();
  /** The last continuation that was found. It usually continues other texts as well. */
  let found: number[] = [];
  return (start: TextPosition): boolean => {
    const { finished, outer, item } = start.level;
    const isDue = finished !== null && outer === OUTSIDE && item === '';
    const beginning = isDue ? beginnings.get(start.state) : undefined;
    piece.spend(FILTER_UNITS);
    if (beginning && finished?.slice(known).every((value) => !value.startsWith(beginning))) return true;
    piece.spend(SEARCH_UNITS + FILTER_UNITS * found.length + ((finished?.length ?? 0) >> 3));
    const next = (position: TextPosition | null, byte: number) =>
      position && nextPosition(table, position, byte, budget);
    const replayed = found.length > 0 ? found.reduce(next, start) : null;
    if (replayed !== null && !mayRepeat(replayed.level)) return true;
    const path = [{ position: start, byte: 0, tried: 0 }];
    for (let steps = 0; steps < MAX_SEARCH_STEPS; steps++) {
      const last = path.at(-1);
      if (last === undefined) return false;
      const { position } = last;
      const byte = SEARCH_ORDER[last.tried++];
      piece.spend(1);
      if (byte === undefined) {
        path.pop();
        continue;
      }
      const after = next(position, byte);
      // The end of the array is looked for first, because it costs less.
      if (after?.level === OUTSIDE || (last.tried === 1 && !mayRepeat(position.level))) {
        if (path.length > 1) found = path.slice(1).map((step) => step.byte);
        const text = String.fromCharCode(...found);
        if (isDue && path.length > 1 && /^"[^"\\]/.test(text)) beginnings.set(start.state, text);
        return true;
      }
      // Space between tokens is not needed, except for the second half of a line break.
      if (after === null || (after.level === position.level && path.length > 1)) continue;
      piece.spend(SEARCH_UNITS);
      path.push({ position: after, byte, tried: 0 });
    }
    return true;
  };
}

/** Returns a mask without the tokens that would repeat an item or a key, or leave no other continuation. */
export function withoutRepetitions(
  mask: Uint32Array,
  walk: TrieWalk,
  table: StateTable,
  start: TextPosition,
  budget: WorkBudget,
): Uint32Array {
  const { nodes, subtreeEnds, quotes, brackets, tokens } = walk.trie;
  const piece = budget.piece(MAX_UNITS);
  const known = start.level.outer === OUTSIDE ? (start.level.finished?.length ?? 0) : 0;
  const goesOn = searchOf(table, budget, piece, known);
  const repeating = walk.emptyMask();
  // Within a new string, only quotes and escapes matter; `text` is what a position lacks since the last one.
  const path = [{ position: start, text: '', isNew: !mayRepeat(start.level) }];
  for (let node = 0; node < nodes.length; ) {
    const byte = nodes[node]! & 255;
    const char = String.fromCharCode(byte);
    const depth = nodes[node]! >> 8;
    const end = subtreeEnds[node]!;
    const { position, text, isNew } = path[depth]!;
    const { level } = position;
    const isWithinNew = isNew && level.token === 'string';
    // Parts of a new item, and what is outside of such arrays, can do harm behind a bracket only.
    const isPartOfNew = isNew && level.finished === null;
    const ends = isPartOfNew ? brackets : quotes;
    const isSafe = (isPartOfNew || isWithinNew) && ends[end] === ends[node];
    const state = isSafe ? DEAD : table.next(position.state, byte, budget);
    const isNewItem = isWithinNew && char === '"' && level.finished !== null && level.outer === OUTSIDE;
    const mayClose = isNewItem && state !== DEAD && table.next(state, CLOSING, budget) !== DEAD;
    if (state === DEAD || (mayClose && end === node + 1)) {
      node = end;
      continue;
    }
    if (level === OUTSIDE ? !/[[{]/.test(char) : isWithinNew && !/["\\]/.test(char)) {
      piece.spend(1);
      path[depth + 1] = { position: { state, level }, text: level === OUTSIDE ? '' : text + char, isNew };
      node++;
      continue;
    }
    piece.spend(FILTER_UNITS);
    const whole = text === '' ? position : { ...position, level: { ...level, item: level.item + text } };
    const after = nextPosition(table, whole, byte, budget);
    // A new item stays so while parts of it follow, which need not differ themselves.
    const isPart = after !== null && (after.level === OUTSIDE || after.level.finished === null);
    const staysNew = isNew && (isPart || (isWithinNew && char === '\\'));
    if (after !== null && (staysNew || mayClose || goesOn(after))) {
      const isNewAfter = staysNew || (after.level.token === 'string' && !mayRepeat(after.level));
      path[depth + 1] = { position: after, text: '', isNew: isNewAfter };
      node++;
    } else for (; node < end; node++) repeating[tokens[node]! >>> 5]! |= 1 << (tokens[node]! & 31);
  }
  const removed = walk.finish(repeating);
  return mask.map((word, w) => word & ~removed[w]!);
}
