import type { WorkBudget } from '../automaton/work-budget.ts';
import { afterByte, type ItemPosition, outermost, REPEATED } from './distinct-items.ts';
import { DEAD, type StateTable } from './state-table.ts';

/** A place in a text of a grammar with arrays whose items must differ, or objects whose keys must. */
export interface TextPosition {
  readonly state: number;
  /** Null outside of them. */
  readonly items: ItemPosition | null;
  /**
   * The text from the bracket or brace of the outermost one to its last comma, and since then. One code unit
   * per byte.
   */
  readonly before: string;
  readonly item: string;
}

const OUTSIDE = { items: null, before: '', item: '' };

export const startOf = ({ initial }: StateTable): TextPosition => ({ state: initial, ...OUTSIDE });

/** Returns the position after a byte; null if no text continues so. */
export function nextPosition(
  table: StateTable,
  { state, items, before, item }: TextPosition,
  byte: number,
  budget: WorkBudget,
): TextPosition | null {
  const next = table.next(state, byte, budget);
  if (next === DEAD) return null;
  const isDistinct = (): boolean => opensDistinct(table, state, next);
  if (items === null) {
    if ((byte !== 0x5b && byte !== 0x7b) || !isDistinct()) return { state: next, ...OUTSIDE };
    return { state: next, items: outermost(byte === 0x7b), before: String.fromCharCode(byte), item: '' };
  }
  const longer = item + String.fromCharCode(byte);
  const after = afterByte(items, byte, item.length, (from) => longer.slice(from), isDistinct);
  if (after === REPEATED) return null;
  if (after === null) return { state: next, ...OUTSIDE };
  const isNextItem = byte === 0x2c && after.token === 'none' && after.level.outer === null;
  if (isNextItem) return { state: next, items: after, before: before + longer, item: '' };
  return { state: next, items: after, before, item: longer };
}

/**
 * Whether the byte between two states began a rule for arrays whose items, or objects whose keys, must
 * differ.
 */
function opensDistinct(table: StateTable, before: number, after: number): boolean {
  const items = table.items(after);
  for (let i = 0; i < items.length; i += 2)
    if (items[i + 1] === before && table.program.distinctRules.has(table.states.ruleOf(items[i]!)))
      return true;
  return false;
}
