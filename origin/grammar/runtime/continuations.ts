import type { WorkBudget, WorkPiece } from '../automaton/work-budget.ts';
import { nextPosition, type TextPosition } from './distinct-arrays.ts';
import { type Item, mayOnlyRepeat } from './distinct-items.ts';
import { DEAD, type StateTable } from './state-table.ts';

/** Units of a filter of a mask or of a search beside those of the parser; about 30 ms. */
export const UNITS_PER_FILTER = 3_000_000;
/** If a search for a continuation needs more steps, there probably is one. */
const MAX_SEARCH_STEPS = 100_000;
/** Reading the text of an item takes about 1 µs. */
const STEP_UNITS = 100;
/** A step of an array takes about 100 ns. */
export const BYTE_UNITS = 10;

const bytesOf = (text: string): number[] => Array.from(text, (char) => char.charCodeAt(0));
/**
 * Bytes in the order in which a search tries them: what closes first, then what differs soon, and last what
 * opens.
 */
const BETWEEN_TOKENS = bytesOf(']}",:123456789tfn0-.+eEarlus{[\n');
const WITHIN_STRING = [
  ...bytesOf('"'),
  ...Array.from({ length: 26 }, (_, i) => 97 + i),
  ...Array.from({ length: 256 }, (_, byte) => byte).filter(
    (byte) => byte !== 34 && !(97 <= byte && byte < 123),
  ),
];

/** Finds continuations without a repeated item. */
export class Continuations {
  readonly #table: StateTable;
  readonly #budget: WorkBudget;
  readonly #piece: WorkPiece;
  /** Whether texts have a continuation, by their parser state and text. */
  readonly #results = new Map<string, boolean>();
  /** By the items before a string, and by the state after it or its comma. */
  readonly #afterString = new Map<readonly Item[], Map<string, boolean>>();
  /** The last one that was found. It usually continues other texts as well; at first, the array ends. */
  #last: readonly number[] = [0x5d];

  constructor(table: StateTable, budget: WorkBudget, piece = budget.piece(UNITS_PER_FILTER)) {
    this.#table = table;
    this.#budget = budget;
    this.#piece = piece;
  }

  /**
   * Whether the item of a position is certainly new when it is complete, or some continuation leads to such a
   * position.
   */
  exists(start: TextPosition): boolean {
    if (!mayOnlyRepeatAt(start) || this.#lastFits(start)) return true;
    const path: { readonly key: string; readonly position: TextPosition; tried: number }[] = [];
    const enter = (position: TextPosition): boolean => {
      if (!mayOnlyRepeatAt(position)) return true;
      const key = `${position.state} ${position.before}${position.item}`;
      const isKnown = this.#results.get(key);
      this.#piece.spend(STEP_UNITS);
      if (isKnown === undefined) {
        this.#results.set(key, false);
        path.push({ key, position, tried: 0 });
      }
      return isKnown === true;
    };
    let goesOn = enter(start);
    for (let steps = 0; !goesOn; steps++) {
      const last = path.at(-1);
      if (last === undefined) return false;
      const byte = bytesAfter(last.position)[last.tried++];
      this.#piece.spend(1);
      const next = byte === undefined ? null : nextPosition(this.#table, last.position, byte, this.#budget);
      if (byte === undefined) path.pop();
      goesOn = steps > MAX_SEARCH_STEPS || (next !== null && enter(next));
    }
    for (const { key } of path) this.#results.set(key, true);
    this.#last = path.map(({ position, tried }) => bytesAfter(position)[tried - 1]!);
    return true;
  }

  /**
   * Whether a text goes on after any new string of an outermost array. It does if the array ends, or if one
   * of two strings follows that begin differently from each other and from all items so far.
   * @param state after the string or, if `isNext`, after its comma
   */
  existsAfterString({ items }: TextPosition, state: number, isNext: boolean): boolean {
    const seen = items!.level.seen!;
    const results = this.#afterString.get(seen) ?? new Map<string, boolean>();
    this.#afterString.set(seen, results);
    const key = `${state} ${isNext}`;
    let exists = results.get(key);
    if (exists === undefined) {
      const after = (from: number, byte: number): number =>
        from === DEAD ? DEAD : this.#table.next(from, byte, this.#budget);
      const comma = isNext ? state : after(state, 0x2c);
      const quote = comma === DEAD ? DEAD : after(comma, 0x22);
      const isNew = (byte: number): boolean =>
        after(quote, byte) !== DEAD && seen.every((item) => !item.mayBeginWith(byte));
      const beginnings = WITHIN_STRING.slice(1, 27).filter(isNew).length;
      exists = (!isNext && after(state, 0x5d) !== DEAD) || beginnings > 1;
      results.set(key, exists);
    }
    return exists;
  }

  #lastFits(start: TextPosition): boolean {
    let position: TextPosition | null = start;
    for (const byte of this.#last) {
      this.#piece.spend(BYTE_UNITS);
      position = nextPosition(this.#table, position, byte, this.#budget);
      if (position === null) return false;
      if (!mayOnlyRepeatAt(position)) return true;
    }
    return false;
  }
}

const bytesAfter = ({ items }: TextPosition): readonly number[] =>
  items?.token === 'string' ? WITHIN_STRING : BETWEEN_TOKENS;

export const mayOnlyRepeatAt = ({ items, item }: TextPosition): boolean =>
  items !== null && mayOnlyRepeat(items, (from) => item.slice(from));
