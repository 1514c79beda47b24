import type { WorkBudget } from '../work-budget.ts';
import { DEAD, RETURNING, type StateTable, UNKNOWN } from './state-table.ts';
import type { TokenTrie } from './token-trie.ts';

/** Walks token trees along parser states. One instance per thread; its stack is reused. */
export class MaskWalk {
  readonly #trie: TokenTrie;
  /** Parser state before the byte of each depth. */
  readonly #stack: Int32Array;

  constructor(trie: TokenTrie) {
    this.#trie = trie;
    this.#stack = new Int32Array(trie.maxDepth + 2);
  }

  get nodes(): number {
    return this.#trie.byte.length;
  }

  /**
   * Sets the bits of the tokens below nodes `begin` … `past` − 1 (whole subtrees) that can be read from `state`.
   * Answers the nodes with children at which the studied rule returns.
   */
  run(
    table: StateTable,
    state: number,
    begin: number,
    past: number,
    mask: Uint32Array,
    budget: WorkBudget,
  ): number[] {
    const { byte, depth, end, token, twin } = this.#trie;
    const { classOf, classCount } = table.program;
    const stack = this.#stack;
    const returning: number[] = [];
    let rows = table.rows.data;
    let flags = table.flags.data;
    let visited = 0;
    if (begin < past) stack[depth[begin]!] = state;
    for (let node = begin; node < past; visited++) {
      const level = depth[node]!;
      const from = stack[level]!;
      const byteClass = classOf[byte[node]!]!;
      let to = rows[from * classCount + byteClass]!;
      if (to === UNKNOWN) {
        to = table.step(from, byteClass, budget);
        rows = table.rows.data;
        flags = table.flags.data;
      }
      if (to === DEAD) {
        node = end[node]!;
        continue;
      }
      stack[level + 1] = to;
      for (let id = token[node]!; id >= 0; id = twin[id]!) mask[id >>> 5]! |= 1 << (id & 31);
      if ((flags[to]! & RETURNING) !== 0 && end[node]! > node + 1) returning.push(node);
      node++;
    }
    budget.spend(visited);
    return returning;
  }

  /** As `run`, for the subtrees below single nodes. */
  runBelow(
    table: StateTable,
    state: number,
    nodes: readonly number[],
    mask: Uint32Array,
    budget: WorkBudget,
  ): void {
    for (const node of nodes) this.run(table, state, node + 1, this.#trie.end[node]!, mask, budget);
  }
}
