import type { WorkBudget } from '../automaton/work-budget.ts';
import { DEAD, type StateTable, UNKNOWN } from './state-table.ts';
import { maskLengthOf, type TokenTrie } from './token-trie.ts';

/**
 * Walks a token trie and the parser states together. Each thread needs its own instance, because the stack is
 * reused.
 */
export class TrieWalk {
  readonly trie: TokenTrie;
  /** Parser state before the byte of each depth. */
  readonly #stack: Int32Array;

  constructor(trie: TokenTrie) {
    this.trie = trie;
    this.#stack = new Int32Array(trie.maxTokenBytes + 1);
  }

  /** Bytes of the longest token. */
  get maxTokenBytes(): number {
    return this.trie.maxTokenBytes;
  }

  /** An empty mask for a walk, longer than a vocabulary mask. */
  emptyMask(): Uint32Array {
    return new Uint32Array(maskLengthOf(this.trie) + 1 + (this.trie.duplicates.length >>> 5));
  }

  /** Sets the bits of tokens with equal bytes, and trims a walked mask to the vocabulary. */
  finish(mask: Uint32Array): Uint32Array {
    const length = maskLengthOf(this.trie);
    this.trie.duplicates.forEach((group, g) => {
      if (((mask[length + ((g + 1) >>> 5)]! >>> ((g + 1) & 31)) & 1) === 0) return;
      for (const token of group) mask[token >>> 5]! |= 1 << (token & 31);
    });
    return mask.subarray(0, length);
  }

  /** Number of bytes on a node's path. */
  bytesAt(node: number): number {
    return (this.trie.nodes[node]! >> 8) + 1;
  }

  /**
   * Sets the bits of all tokens that match from `state`. Returns the inner nodes at which an ANY_CALLER rule
   * returns, or null if there are more than `maxReturns`.
   */
  walkAll(
    table: StateTable,
    state: number,
    mask: Uint32Array,
    budget: WorkBudget,
    maxReturns = 0,
  ): number[] | null {
    const returns: number[] = [];
    this.#run(table, state, 0, this.trie.nodes.length, mask, budget, returns, maxReturns + 1);
    return returns.length > maxReturns ? null : returns;
  }

  /** Sets the bits of the tokens below `nodes` that match from `state`. */
  walkBelow(
    table: StateTable,
    state: number,
    nodes: readonly number[],
    mask: Uint32Array,
    budget: WorkBudget,
  ): void {
    for (const node of nodes)
      this.#run(table, state, node + 1, this.trie.subtreeEnds[node]!, mask, budget, [], 0);
  }

  /** Walks the subtrees `start` … `end` − 1. Adds at most `maxReturns` nodes to `returns`. */
  #run(
    table: StateTable,
    state: number,
    start: number,
    end: number,
    mask: Uint32Array,
    budget: WorkBudget,
    returns: number[],
    maxReturns: number,
  ): void {
    const { nodes, subtreeEnds, tokens } = this.trie;
    const { classOf, classCount } = table.program;
    const stack = this.#stack;
    let rows = table.rows.data;
    let visited = 0;
    if (start < end) stack[nodes[start]! >> 8] = state;
    for (let node = start; node < end; visited++) {
      const packed = nodes[node]!;
      const depth = packed >> 8;
      const byteClass = classOf[packed & 255]!;
      let to = rows[stack[depth]! * classCount + byteClass]!;
      // All rare cases are at most DEAD, so that the common case costs one comparison.
      if (to <= DEAD) {
        if (to === UNKNOWN) {
          to = table.step(stack[depth]!, byteClass, budget);
          rows = table.rows.data;
        }
        if (to === DEAD) {
          node = subtreeEnds[node]!;
          continue;
        }
        if (to < 0) {
          to = ~to;
          if (returns.length < maxReturns && subtreeEnds[node]! > node + 1) returns.push(node);
        }
      }
      stack[depth + 1] = to;
      // Nodes without a token set a bit beyond the vocabulary, which avoids an unpredictable branch.
      const token = tokens[node]!;
      mask[token >>> 5]! |= 1 << (token & 31);
      node++;
    }
    budget.spend(visited);
  }
}
