import type { WorkBudget } from '../work-budget.ts';
import { afterByte, type ItemPosition, mayOnlyRepeat, outermost, REPEATED } from './distinct-items.ts';
import { DEAD, type StateTable } from './state-table.ts';
import type { TokenTrie } from './token-trie.ts';

/** A place in a text of a grammar with arrays whose items must differ, or objects whose keys must. */
export interface TextPosition {
  readonly state: number;
  /** Null outside of them. */
  readonly items: ItemPosition | null;
  /** The text since the bracket or brace of the outermost one, one code unit per byte. */
  readonly text: string;
}

export const startOf = ({ initial }: StateTable): TextPosition => ({ state: initial, items: null, text: '' });

/** If a search for a continuation needs more steps, there probably is one. */
const MAX_SEARCH_STEPS = 100_000;
/** Reading the text of an item takes about 1 µs. */
const STEP_UNITS = 100;

const bytesOf = (text: string): number[] => Array.from(text, (char) => char.charCodeAt(0));
/** Bytes in the order in which a search tries them: what closes first, then what differs soon, and last what opens. */
const BETWEEN_TOKENS = bytesOf(']}",:123456789tfn0-.+eEarlus{[\n');
const WITHIN_STRING = [
  ...bytesOf('"'),
  ...Array.from({ length: 26 }, (_, i) => 97 + i),
  ...Array.from({ length: 256 }, (_, byte) => byte).filter(
    (byte) => byte !== 34 && !(97 <= byte && byte < 123),
  ),
];

/** Returns the position after a byte; null if no text continues so. */
export function nextPosition(
  table: StateTable,
  { state, items, text }: TextPosition,
  byte: number,
  budget: WorkBudget,
): TextPosition | null {
  const next = table.next(state, byte, budget);
  if (next === DEAD) return null;
  const isDistinct = (): boolean => opensDistinct(table, state, next);
  if (items === null) {
    if ((byte !== 0x5b && byte !== 0x7b) || !isDistinct()) return { state: next, items: null, text: '' };
    return { state: next, items: outermost(byte === 0x7b), text: String.fromCharCode(byte) };
  }
  const longer = text + String.fromCharCode(byte);
  const after = afterByte(items, byte, text.length, (from) => longer.slice(from), isDistinct);
  if (after === REPEATED) return null;
  return { state: next, items: after, text: after === null ? '' : longer };
}

/** Whether the byte between two states began a rule for arrays whose items, or objects whose keys, must differ. */
function opensDistinct(table: StateTable, before: number, after: number): boolean {
  const items = table.items(after);
  for (let i = 0; i < items.length; i += 2)
    if (items[i + 1] === before && table.program.distinctRules.has(table.states.ruleOf(items[i]!)))
      return true;
  return false;
}

/** Whether texts go on without a repeated item, by their parser state and text. */
export type KnownEnds = Map<string, boolean>;

/** Whether the item of a position is certainly new when it is complete, or some continuation leads to such a position. */
export function canGoOn(
  table: StateTable,
  start: TextPosition,
  budget: WorkBudget,
  known: KnownEnds = new Map(),
): boolean {
  const path: { readonly key: string; readonly position: TextPosition; tried: number }[] = [];
  const enter = (position: TextPosition): boolean => {
    if (!mayOnlyRepeatAt(position)) return true;
    const key = `${position.state} ${position.text}`;
    const isKnown = known.get(key);
    budget.spend(STEP_UNITS);
    if (isKnown === undefined) {
      known.set(key, false);
      path.push({ key, position, tried: 0 });
    }
    return isKnown === true;
  };
  let goesOn = enter(start);
  for (let steps = 0; !goesOn; steps++) {
    const last = path.at(-1);
    if (last === undefined) return false;
    const isString = last.position.items?.token === 'string';
    const byte = (isString ? WITHIN_STRING : BETWEEN_TOKENS)[last.tried++];
    budget.spend(1);
    const next = byte === undefined ? null : nextPosition(table, last.position, byte, budget);
    if (byte === undefined) path.pop();
    goesOn = steps > MAX_SEARCH_STEPS || (next !== null && enter(next));
  }
  for (const { key } of path) known.set(key, true);
  return true;
}

const mayOnlyRepeatAt = ({ items, text }: TextPosition): boolean =>
  items !== null && mayOnlyRepeat(items, (from) => text.slice(from));

/** Removes the tokens from masks that would repeat an item or a key, or leave no other continuation. */
export class DistinctItemsFilter {
  readonly #trie: TokenTrie;
  /** Per node: how many earlier nodes end in a quote, and in an opening bracket or brace. */
  readonly #quotes: Int32Array;
  readonly #brackets: Int32Array;

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.#quotes = countsOf(trie, [0x22]);
    this.#brackets = countsOf(trie, [0x5b, 0x7b]);
  }

  filter(mask: Uint32Array, table: StateTable, start: TextPosition, budget: WorkBudget): Uint32Array {
    const { nodes, subtreeEnds } = this.#trie;
    const kept = mask.slice();
    const known: KnownEnds = new Map();
    const path = [{ position: start, mayOnlyRepeat: mayOnlyRepeatAt(start) }];
    for (let node = 0; node < nodes.length; ) {
      const depth = nodes[node]! >> 8;
      const before = path[depth]!;
      const end = subtreeEnds[node]!;
      if (this.#isSafe(before.position, node, end) && !before.mayOnlyRepeat) {
        node = end;
        continue;
      }
      budget.spend(10);
      const after = nextPosition(table, before.position, nodes[node]! & 255, budget);
      if (after === null) {
        // The mask has no token that the parser state refuses.
        const isAllowed = table.next(before.position.state, nodes[node]! & 255, budget) !== DEAD;
        if (isAllowed) this.#clear(kept, node, end);
        node = end;
        continue;
      }
      // A string that differs from all earlier ones keeps doing so.
      const isString = before.position.items?.token === 'string' && after.items?.token === 'string';
      const mayRepeat = (before.mayOnlyRepeat || !isString) && mayOnlyRepeatAt(after);
      if (mayRepeat && this.#allows(kept, node) && !canGoOn(table, after, budget, known))
        this.#clear(kept, node, node + 1);
      path[depth + 1] = { position: after, mayOnlyRepeat: mayRepeat };
      node++;
    }
    return kept;
  }

  /** Whether no token of a subtree can complete or begin an item that must differ. */
  #isSafe({ items }: TextPosition, node: number, end: number): boolean {
    if (items === null) return this.#brackets[end] === this.#brackets[node];
    return items.token === 'string' && this.#quotes[end] === this.#quotes[node];
  }

  #tokensAt(node: number): readonly number[] {
    const { tokens, vocabularySize, duplicates } = this.#trie;
    const token = tokens[node]!;
    if (token < vocabularySize) return [token];
    return duplicates[token - 32 * Math.ceil(vocabularySize / 32) - 1] ?? [];
  }

  #allows(mask: Uint32Array, node: number): boolean {
    return this.#tokensAt(node).some((token) => ((mask[token >>> 5]! >>> (token & 31)) & 1) === 1);
  }

  #clear(mask: Uint32Array, from: number, to: number): void {
    for (let node = from; node < to; node++)
      for (const token of this.#tokensAt(node)) mask[token >>> 5]! &= ~(1 << (token & 31));
  }
}

function countsOf({ nodes }: TokenTrie, bytes: readonly number[]): Int32Array {
  const counts = new Int32Array(nodes.length + 1);
  nodes.forEach((node, i) => {
    counts[i + 1] = counts[i]! + (bytes.includes(node & 255) ? 1 : 0);
  });
  return counts;
}
