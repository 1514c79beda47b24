import type { WorkBudget } from '../work-budget.ts';
import { DEAD, type StateTable, UNKNOWN } from './state-table.ts';
import { maskLengthOf, type TokenTrie } from './token-trie.ts';

/** Walks a token tree along parser states. One instance per thread; its stack is reused. */
export class MaskWalk {
  readonly #trie: TokenTrie;
  /** Parser state before the byte of each depth. */
  readonly #stack: Int32Array;

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.#stack = new Int32Array(trie.longest + 1);
  }

  /** Bytes of the longest token. */
  get longest(): number {
    return this.#trie.longest;
  }

  /** An empty mask to walk with: one word longer than the vocabulary needs. */
  scratch(): Uint32Array {
    return new Uint32Array(maskLengthOf(this.#trie) + 1);
  }

  /** The mask of the vocabulary that a walked one stands for: tokens with equal bytes share their bit. */
  finished(scratch: Uint32Array): Uint32Array {
    for (const [first, ...others] of this.#trie.twins) {
      if (((scratch[first! >>> 5]! >>> (first! & 31)) & 1) === 0) continue;
      for (const token of others) scratch[token >>> 5]! |= 1 << (token & 31);
    }
    return scratch.subarray(0, maskLengthOf(this.#trie));
  }

  /** Bytes of the text that a node stands for. */
  lengthAt(node: number): number {
    return (this.#trie.heads[node]! >> 8) + 1;
  }

  /**
   * Sets the bits of all tokens that can be read from `state`. Answers the nodes with children at which the studied
   * rule returns; null when there are more than `maxReturning`.
   */
  all(
    table: StateTable,
    state: number,
    mask: Uint32Array,
    budget: WorkBudget,
    maxReturning = 0,
  ): number[] | null {
    const returning: number[] = [];
    this.#run(table, state, 0, this.#trie.heads.length, mask, budget, returning, maxReturning + 1);
    return returning.length > maxReturning ? null : returning;
  }

  /** Sets the bits of the tokens below single nodes that can be read from `state` on. */
  below(
    table: StateTable,
    state: number,
    nodes: readonly number[],
    mask: Uint32Array,
    budget: WorkBudget,
  ): void {
    for (const node of nodes) this.#run(table, state, node + 1, this.#trie.ends[node]!, mask, budget, [], 0);
  }

  /** Nodes `begin` … `past` − 1 are whole subtrees. At most `maxReturning` nodes are added to `returning`. */
  #run(
    table: StateTable,
    state: number,
    begin: number,
    past: number,
    mask: Uint32Array,
    budget: WorkBudget,
    returning: number[],
    maxReturning: number,
  ): void {
    const { heads, ends, tokens } = this.#trie;
    const { classOf, classCount } = table.program;
    const stack = this.#stack;
    let rows = table.rows.data;
    let visited = 0;
    if (begin < past) stack[heads[begin]! >> 8] = state;
    for (let node = begin; node < past; visited++) {
      const head = heads[node]!;
      const depth = head >> 8;
      const byteClass = classOf[head & 255]!;
      let to = rows[stack[depth]! * classCount + byteClass]!;
      // The rare cases are all below FIRST_STATE, so that the usual one costs a single comparison.
      if (to <= DEAD) {
        if (to === UNKNOWN) {
          to = table.step(stack[depth]!, byteClass, budget);
          rows = table.rows.data;
        }
        if (to === DEAD) {
          node = ends[node]!;
          continue;
        }
        if (to < 0) {
          to = ~to;
          if (returning.length < maxReturning && ends[node]! > node + 1) returning.push(node);
        }
      }
      stack[depth + 1] = to;
      // Nodes without a token set a bit beyond the vocabulary: cheaper than a branch that cannot be predicted.
      const token = tokens[node]!;
      mask[token >>> 5]! |= 1 << (token & 31);
      node++;
    }
    budget.spend(visited);
  }
}
