import type { WorkBudget } from '../work-budget.ts';
import { appendEdge, type Dfa } from './dfa.ts';
import { CALL } from './nfa.ts';
import { Partition } from './partition.ts';

/** Beyond this number of transitions, the second pass would take most of a compilation. */
const MAX_TRANSITIONS = 200_000;

/**
 * The minimal DFA of a trimmed DFA over bytes and calls. The first pass takes each range of symbols for one symbol, which merges
 * most states. The second one splits the ranges of what is left, unless it is too large.
 */
export function minimize(dfa: Dfa, budget: WorkBudget): Dfa {
  if (dfa.edges.length < 2) return dfa;
  const merged = refine(dfa, transitionsByRange(dfa), budget);
  const split = transitionsBySymbol(merged);
  return split === null ? merged : refine(merged, split, budget);
}

/** The edges of a DFA from tails to heads. Equal labels stand for equal symbols. */
interface Transitions {
  readonly tails: readonly number[];
  readonly labels: readonly number[];
  readonly heads: readonly number[];
}

/**
 * Merges equivalent states. Refines the partitions of states and of transitions by each other until both are stable. Source:
 * Valmari and Lehtinen, "Efficient minimization of DFAs with partial transition functions", 2008. O(m log n) for m transitions
 * and n states.
 */
function refine(dfa: Dfa, { tails, labels, heads }: Transitions, budget: WorkBudget): Dfa {
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

/** One transition per edge. Calls are above all bytes, so they are edges of their own. */
function transitionsByRange({ edges }: Dfa): Transitions {
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

/**
 * One transition per state, symbol class and target. Symbol classes are the ranges between all edge boundaries. Null if there are
 * too many.
 */
function transitionsBySymbol(dfa: Dfa): Transitions | null {
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
      const end = call ? first + 1 : classAt.get(edges[i + 1]! + 1)!;
      for (let label = first; label < end; label++) {
        tails.push(from);
        labels.push(label);
        heads.push(edges[i + 2]!);
      }
    }
  });
  return tails.length > MAX_TRANSITIONS ? null : { tails, labels, heads };
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
