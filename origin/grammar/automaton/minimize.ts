import { appendEdge, type Dfa } from './dfa.ts';
import { CALL } from './nfa.ts';
import { Partition } from './partition.ts';
import type { WorkBudget } from './work-budget.ts';

/**
 * Merges equivalent states of a trimmed DFA over bytes and calls. Refines the partitions of states and of
 * transitions by each other until both are stable. Each range of symbols counts as one symbol. To divide the
 * ranges finds less than 1 % more states to merge (in the schemas of the tests). Source: Valmari and
 * Lehtinen, "Efficient minimization of DFAs with partial transition functions", 2008. O(m log n) for m
 * transitions and n states.
 */
export function minimize(dfa: Dfa, budget: WorkBudget): Dfa {
  if (dfa.edges.length < 2) return dfa;
  const { tails, labels, heads } = transitionsOf(dfa);
  const size = dfa.edges.length;
  budget.spend(20 * (size + tails.length));
  const count = tails.length;
  const blocks = new Partition(size);
  for (let state = 0; state < size; state++) if (dfa.final[state] === 1) blocks.mark(state);
  blocks.split();
  const cords = new Partition(count);
  cords.groupBy(labels);
  const incoming = incomingOf(heads, size);
  let block = 1;
  for (let cord = 0; cord < cords.sets; cord++) {
    for (let i = cords.start[cord]!; i < cords.end[cord]!; i++) blocks.mark(tails[cords.elements[i]!]!);
    blocks.split();
    for (; block < blocks.sets; block++) {
      for (let i = blocks.start[block]!; i < blocks.end[block]!; i++) {
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

/** The edges from tails to heads. Equal labels stand for equal ranges; calls are above all bytes. */
function transitionsOf({ edges }: Dfa) {
  const names = new Map<number, number>();
  const tails: number[] = [];
  const labels: number[] = [];
  const heads: number[] = [];
  edges.forEach((list, from) => {
    for (let i = 0; i < list.length; i += 3) {
      const range = list[i]! >= CALL ? list[i]! : 256 * list[i]! + list[i + 1]!;
      const label = names.get(range) ?? names.size;
      names.set(range, label);
      tails.push(from);
      labels.push(label);
      heads.push(list[i + 2]!);
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
  // Numbers blocks by their first state, so that the start stays state 0.
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
