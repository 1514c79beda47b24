import type { WorkBudget } from '../work-budget.ts';
import { appendEdge, type Dfa } from './dfa.ts';
import { CALL } from './nfa.ts';

/**
 * The smallest automaton for the same language, for a trimmed automaton over bytes and calls. Method: refine the
 * partition of states by the partition of transitions and the other way round until both are stable (Valmari and
 * Lehtinen, "Efficient minimization of DFAs with partial transition functions", 2008); O(m log n) for m transitions.
 */
export function minimize(dfa: Dfa, budget: WorkBudget): Dfa {
  const size = dfa.edges.length;
  if (size < 2) return dfa;
  const { tails, labels, heads } = transitionsOf(dfa);
  budget.spend(30 * (size + tails.length));
  const count = tails.length;
  const blocks = new Partition(size);
  for (let state = 0; state < size; state++) if (dfa.final[state] === 1) blocks.mark(state);
  blocks.split();
  const cords = new Partition(count);
  cords.groupBy(labels);
  const incoming = incomingOf(heads, size);
  let block = 1;
  for (let cord = 0; cord < cords.sets; cord++) {
    for (let i = cords.first[cord]!; i < cords.past[cord]!; i++) blocks.mark(tails[cords.elements[i]!]!);
    blocks.split();
    for (; block < blocks.sets; block++) {
      for (let i = blocks.first[block]!; i < blocks.past[block]!; i++) {
        const state = blocks.elements[i]!;
        for (let k = incoming.offsets[state]!; k < incoming.offsets[state + 1]!; k++) {
          cords.mark(incoming.transitions[k]!);
        }
      }
      cords.split();
    }
  }
  return quotient(dfa, blocks);
}

/** One transition per state, symbol class and target; classes are the pieces between all boundaries. */
function transitionsOf(dfa: Dfa): { tails: number[]; labels: number[]; heads: number[] } {
  const cuts = new Set<number>();
  for (const edges of dfa.edges) {
    for (let i = 0; i < edges.length; i += 3)
      if (edges[i]! < CALL) cuts.add(edges[i]!).add(edges[i + 1]! + 1);
  }
  const sorted = [...cuts].sort((a, b) => a - b);
  const classAt = new Map(sorted.map((cut, index) => [cut, index]));
  const tails: number[] = [];
  const labels: number[] = [];
  const heads: number[] = [];
  dfa.edges.forEach((edges, from) => {
    for (let i = 0; i < edges.length; i += 3) {
      const call = edges[i]! >= CALL;
      const first = call ? edges[i]! : classAt.get(edges[i]!)!;
      const past = call ? first + 1 : classAt.get(edges[i + 1]! + 1)!;
      for (let label = first; label < past; label++) {
        tails.push(from);
        labels.push(label);
        heads.push(edges[i + 2]!);
      }
    }
  });
  return { tails, labels, heads };
}

function incomingOf(
  heads: readonly number[],
  size: number,
): { offsets: Int32Array; transitions: Int32Array } {
  const offsets = new Int32Array(size + 1);
  for (const head of heads) offsets[head + 1]!++;
  for (let state = 0; state < size; state++) offsets[state + 1]! += offsets[state]!;
  const next = offsets.slice();
  const transitions = new Int32Array(heads.length);
  heads.forEach((head, index) => {
    transitions[next[head]!++] = index;
  });
  return { offsets, transitions };
}

function quotient(dfa: Dfa, blocks: Partition): Dfa {
  // The start's block must be state 0; the others keep their order of discovery.
  const names = new Int32Array(blocks.sets).fill(-1);
  const representatives: number[] = [];
  for (let state = 0; state < dfa.edges.length; state++) {
    const block = blocks.setOf[state]!;
    if (names[block] === -1) names[block] = representatives.push(state) - 1;
  }
  return {
    edges: representatives.map((state) => {
      const out: number[] = [];
      const edges = dfa.edges[state]!;
      for (let i = 0; i < edges.length; i += 3) {
        const target = names[blocks.setOf[edges[i + 2]!]!]!;
        if (edges[i]! >= CALL) out.push(edges[i]!, edges[i + 1]!, target);
        else appendEdge(out, edges[i]!, edges[i + 1]!, target);
      }
      return out;
    }),
    final: Uint8Array.from(representatives, (state) => dfa.final[state]!),
  };
}

/** A refinable partition of 0 … size − 1: elements of a set stand together, marked ones in front. */
class Partition {
  sets: number;
  readonly elements: Int32Array;
  readonly setOf: Int32Array;
  readonly first: Int32Array;
  readonly past: Int32Array;
  readonly #place: Int32Array;
  readonly #marked: Int32Array;
  readonly #touched: number[] = [];

  constructor(size: number) {
    this.sets = size > 0 ? 1 : 0;
    this.elements = Int32Array.from({ length: size }, (_, i) => i);
    this.#place = this.elements.slice();
    this.setOf = new Int32Array(size);
    this.first = new Int32Array(size + 1);
    this.past = new Int32Array(size + 1);
    this.past[0] = size;
    this.#marked = new Int32Array(size + 1);
  }

  mark(element: number): void {
    const set = this.setOf[element]!;
    const place = this.#place[element]!;
    const target = this.first[set]! + this.#marked[set]!;
    if (place < target) return;
    this.#swap(place, target);
    if (this.#marked[set]!++ === 0) this.#touched.push(set);
  }

  /** Separates the marked elements of each set from the others; the smaller part becomes the new set. */
  split(): void {
    for (let set = this.#touched.pop(); set !== undefined; set = this.#touched.pop()) {
      const middle = this.first[set]! + this.#marked[set]!;
      this.#marked[set] = 0;
      if (middle === this.past[set]) continue;
      const created = this.sets++;
      if (middle - this.first[set]! <= this.past[set]! - middle) {
        this.first[created] = this.first[set]!;
        this.past[created] = this.first[set] = middle;
      } else {
        this.past[created] = this.past[set]!;
        this.first[created] = this.past[set] = middle;
      }
      for (let i = this.first[created]!; i < this.past[created]!; i++) {
        this.setOf[this.elements[i]!] = created;
      }
    }
  }

  /** Starts over with one set per key. */
  groupBy(keys: readonly number[]): void {
    this.elements.sort((a, b) => keys[a]! - keys[b]!);
    this.sets = 0;
    this.elements.forEach((element, i) => {
      const fresh = i === 0 || keys[element] !== keys[this.elements[i - 1]!];
      if (fresh) this.first[this.sets++] = i;
      this.past[this.sets - 1] = i + 1;
      this.setOf[element] = this.sets - 1;
      this.#place[element] = i;
    });
  }

  #swap(a: number, b: number): void {
    const x = this.elements[a]!;
    const y = this.elements[b]!;
    this.elements[a] = y;
    this.elements[b] = x;
    this.#place[y] = a;
    this.#place[x] = b;
  }
}
