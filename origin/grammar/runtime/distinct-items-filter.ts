import type { WorkBudget, WorkPiece } from '../automaton/work-budget.ts';
import { BYTE_UNITS, Continuations, mayOnlyRepeatAt, UNITS_PER_FILTER } from './continuations.ts';
import { nextPosition, type TextPosition } from './distinct-arrays.ts';
import { DEAD, type StateTable } from './state-table.ts';
import { maskLengthOf, type TokenTrie } from './token-trie.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const CLOSING = 0x5d;

/** Removes the tokens from masks that would repeat an item or a key, or leave no other continuation. */
export class DistinctItemsFilter {
  readonly #trie: TokenTrie;
  /**
   * Per node: how many earlier nodes end in a quote, in an opening bracket, in any bracket, or in a byte that
   * ends a number.
   */
  readonly #quotes: Int32Array;
  readonly #openings: Int32Array;
  readonly #brackets: Int32Array;
  readonly #ends: Int32Array;
  /** The brackets behind a quote. */
  readonly #afterQuotes: Int32Array;

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.#quotes = countsOf(trie, '"');
    this.#openings = countsOf(trie, '[{');
    this.#brackets = countsOf(trie, '[]{}');
    this.#ends = countsOf(trie, '[]{}," \t\r\n');
    this.#afterQuotes = countsOf(trie, '[]{}', '"');
  }

  filter(mask: Uint32Array, table: StateTable, start: TextPosition, budget: WorkBudget): Uint32Array {
    const kept = mask.slice();
    const piece = budget.piece(UNITS_PER_FILTER);
    const walk = { kept, table, budget, piece, continuations: new Continuations(table, budget, piece) };
    const isNew = !mayOnlyRepeatAt(start);
    if (isNew && isOutermostString(start)) this.#walkNewString(walk, start, 0, this.#trie.nodes.length);
    else this.#walk(walk, start, isNew, 0, this.#trie.nodes.length);
    return kept;
  }

  /** @param isNew whether the item at the start is certainly new */
  #walk(walk: Walk, start: TextPosition, isNew: boolean, from: number, to: number): void {
    const { nodes, subtreeEnds } = this.#trie;
    const { kept, table, budget, piece, continuations } = walk;
    const base = from < to ? nodes[from]! >> 8 : 0;
    const path = [{ position: start, isNew }];
    for (let node = from; node < to; ) {
      const depth = (nodes[node]! >> 8) - base;
      const before = path[depth]!;
      const end = subtreeEnds[node]!;
      if (before.isNew && this.#isSafe(before.position, node, end)) {
        node = end;
        continue;
      }
      piece.spend(BYTE_UNITS);
      const after = nextPosition(table, before.position, nodes[node]! & 255, budget);
      if (after === null) {
        // The mask has no token that the parser state refuses.
        const isAllowed = table.next(before.position.state, nodes[node]! & 255, budget) !== DEAD;
        if (isAllowed) this.#clear(kept, node, end);
        node = end;
        continue;
      }
      // An item that differs from all earlier ones keeps doing so until it is complete.
      const isString = before.position.items?.token === 'string' && after.items?.token === 'string';
      const isStillNew = (before.isNew && isString) || !mayOnlyRepeatAt(after);
      if (!isStillNew && this.#allows(kept, node) && !continuations.exists(after))
        this.#clear(kept, node, node + 1);
      path[depth + 1] = { position: after, isNew: isStillNew };
      node++;
      if (!isStillNew || !isOutermostString(after)) continue;
      this.#walkNewString(walk, after, node, end);
      node = end;
    }
  }

  /**
   * Walks the tokens within a string that differs from all items of the outermost array. Until its quote,
   * only the parser state changes. What is allowed behind the quote seldom depends on the string.
   */
  #walkNewString(walk: Walk, start: TextPosition, from: number, to: number): void {
    const { nodes, subtreeEnds } = this.#trie;
    const { table, budget, piece } = walk;
    const base = from < to ? nodes[from]! >> 8 : 0;
    const states = [start.state];
    const bytes: number[] = [];
    let visited = 0;
    for (let node = from; node < to; ) {
      const end = subtreeEnds[node]!;
      const depth = (nodes[node]! >> 8) - base;
      const state = states[depth]!;
      const byte = nodes[node]! & 255;
      const next = this.#quotes[end] === this.#quotes[node] ? DEAD : table.next(state, byte, budget);
      visited++;
      if (next === DEAD) {
        node = end;
        continue;
      }
      if (byte === QUOTE || byte === BACKSLASH) {
        if (byte === BACKSLASH || !this.#isFreeAfterString(walk, start, next, node)) {
          const item = start.item + String.fromCharCode(...bytes.slice(0, depth));
          this.#walk(walk, { ...start, state, item }, true, node, end);
        }
        node = end;
        continue;
      }
      states[depth + 1] = next;
      bytes[depth] = byte;
      node++;
    }
    piece.spend(visited);
  }

  /**
   * Whether all tokens below the quote of a new string are certainly allowed: those that end there, at a
   * comma or at the array's end.
   */
  #isFreeAfterString(
    { table, budget, continuations }: Walk,
    start: TextPosition,
    state: number,
    quote: number,
  ): boolean {
    const { nodes, subtreeEnds } = this.#trie;
    if (!continuations.existsAfterString(start, state, false)) return false;
    for (let node = quote + 1; node < subtreeEnds[quote]!; node = subtreeEnds[node]!) {
      const byte = nodes[node]! & 255;
      const next = table.next(state, byte, budget);
      const end = subtreeEnds[node]!;
      if (next === DEAD || (byte === CLOSING && this.#openings[end] === this.#openings[node])) continue;
      const isFree = byte === COMMA && end === node + 1 && continuations.existsAfterString(start, next, true);
      if (!isFree) return false;
    }
    return true;
  }

  /** Whether no token of a subtree can complete a new item, or begin another one that must differ. */
  #isSafe({ items }: TextPosition, node: number, end: number): boolean {
    const lacks = (counts: Int32Array): boolean => counts[end] === counts[node];
    if (items === null) return lacks(this.#openings);
    // An item that holds others is complete after a bracket only.
    const isWithin = items.level.seen === null;
    if (items.token === 'string') return lacks(isWithin ? this.#afterQuotes : this.#quotes);
    return lacks(isWithin ? this.#brackets : this.#ends);
  }

  #allows(mask: Uint32Array, node: number): boolean {
    const isSet = (token: number): boolean => ((mask[token >>> 5]! >>> (token & 31)) & 1) === 1;
    const token = this.#trie.tokens[node]!;
    return token < this.#trie.vocabularySize ? isSet(token) : this.#duplicatesAt(token).some(isSet);
  }

  #clear(mask: Uint32Array, from: number, to: number): void {
    const { tokens, vocabularySize } = this.#trie;
    for (let node = from; node < to; node++) {
      const token = tokens[node]!;
      if (token < vocabularySize) mask[token >>> 5]! &= ~(1 << (token & 31));
      else for (const equal of this.#duplicatesAt(token)) mask[equal >>> 5]! &= ~(1 << (equal & 31));
    }
  }

  /** The tokens with equal bytes that a bit beyond the vocabulary stands for, if any. */
  #duplicatesAt(bit: number): readonly number[] {
    const group = bit - 32 * maskLengthOf(this.#trie) - 1;
    return group < 0 ? NONE : this.#trie.duplicates[group]!;
  }
}

const NONE: readonly number[] = [];

interface Walk {
  readonly kept: Uint32Array;
  readonly table: StateTable;
  readonly budget: WorkBudget;
  readonly piece: WorkPiece;
  readonly continuations: Continuations;
}

const isOutermostString = ({ items }: TextPosition): boolean =>
  items !== null && items.token === 'string' && items.level.outer === null && !items.level.isObject;

/** @param behind counts only nodes behind one of these bytes */
function countsOf({ nodes }: TokenTrie, bytes: string, behind = ''): Int32Array {
  const counts = new Int32Array(nodes.length + 1);
  /** Per depth: whether the node is behind such a byte. */
  const isBehind = [behind === ''];
  nodes.forEach((node, i) => {
    const depth = node >> 8;
    const char = String.fromCharCode(node & 255);
    isBehind[depth + 1] = isBehind[depth]! || behind.includes(char);
    counts[i + 1] = counts[i]! + (isBehind[depth]! && bytes.includes(char) ? 1 : 0);
  });
  return counts;
}
