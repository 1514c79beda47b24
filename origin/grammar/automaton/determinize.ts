import { appendEdge, type Dfa } from './dfa.ts';
import { CALL, type Nfa } from './nfa.ts';
import type { WorkBudget } from './work-budget.ts';

interface DeterminizeOptions {
  readonly budget: WorkBudget;
  /** Maximum number of states; beyond it the result is null. */
  readonly maxStates: number;
  /** Excludes the empty text: the start state is not final, even if the NFA accepts the empty text. */
  readonly nonEmpty: boolean;
}

/** Subset construction. Returns null if the DFA would have too many states. */
export function determinize(nfa: Nfa, options: DeterminizeOptions): Dfa | null {
  const sets: (readonly number[])[] = [nfa.closure([nfa.start])];
  const ids = new Map<string | number, number>();
  // With `nonEmpty`, the start set needs a second, final state that is used when the set is reached again.
  if (!options.nonEmpty) ids.set(keyOf(sets[0]!), 0);
  const edges: number[][] = [];
  /** States of the sets that one target leads to, which most edges need. */
  const single = new Map<number, number>();
  const stateOf = (targets: readonly number[]): number => {
    const [target] = targets;
    const cached = targets.length === 1 ? single.get(target!) : undefined;
    if (cached !== undefined) return cached;
    const state = stateOfSet(targets);
    if (targets.length === 1) single.set(target!, state);
    return state;
  };
  const stateOfSet = (targets: readonly number[]): number => {
    const set = nfa.closure(targets);
    const key = keyOf(set);
    let id = ids.get(key);
    if (id === undefined) {
      id = sets.push(set) - 1;
      ids.set(key, id);
    }
    return id;
  };
  for (let state = 0; state < sets.length; state++) {
    if (sets.length > options.maxStates) return null;
    edges.push(edgesOf(nfa, sets[state]!, stateOf, options.budget));
  }
  const final = Uint8Array.from(sets, (set) => (set.includes(nfa.end) ? 1 : 0));
  if (options.nonEmpty) final[0] = 0;
  return { edges, final };
}

/** A set of one state, the usual case, is its own key. */
function keyOf(set: readonly number[]): string | number {
  return set.length === 1 ? set[0]! : set.join();
}

type StateOf = (targets: readonly number[]) => number;

/** Splits the symbols at every boundary of the set's edges, and collects the targets of each range. */
function edgesOf(nfa: Nfa, set: readonly number[], stateOf: StateOf, budget: WorkBudget): number[] {
  const triples = sortedTriples(nfa, set);
  const out: number[] = [];
  if (areDisjoint(triples)) {
    budget.spend(10 + 15 * triples.length);
    for (const [lo, hi, target] of triples) append(out, lo, hi, stateOf([target]));
    return out;
  }
  const cuts = [...new Set(triples.flatMap(([lo, hi]) => [lo, hi + 1]))].sort((a, b) => a - b);
  budget.spend(20 + 40 * triples.length);
  let active: Triple[] = [];
  let next = 0;
  for (let c = 0; c + 1 < cuts.length; c++) {
    const lo = cuts[c]!;
    active = active.filter((edge) => edge[1] >= lo);
    while (next < triples.length && triples[next]![0] === lo) active.push(triples[next++]!);
    budget.spend(10 + 5 * active.length);
    if (active.length === 0) continue;
    const hi = cuts[c + 1]! - 1;
    append(out, lo, hi, stateOf(active.map((edge) => edge[2])));
  }
  return out;
}

/** An edge from a symbol to another one, and its target. */
type Triple = readonly [lo: number, hi: number, target: number];

function sortedTriples(nfa: Nfa, set: readonly number[]): Triple[] {
  const triples: Triple[] = [];
  for (const state of set) {
    const edges = nfa.edges[state]!;
    for (let i = 0; i < edges.length; i += 3) triples.push([edges[i]!, edges[i + 1]!, edges[i + 2]!]);
  }
  return triples.length < 2 ? triples : triples.sort((a, b) => a[0] - b[0]);
}

function areDisjoint(sorted: readonly Triple[]): boolean {
  return sorted.every(([lo], i) => i === 0 || lo > sorted[i - 1]![1]);
}

/** Calls are never merged to ranges: their numbers are names. */
function append(out: number[], lo: number, hi: number, target: number): void {
  if (lo >= CALL) out.push(lo, hi, target);
  else appendEdge(out, lo, hi, target);
}

/**
 * Removes epsilon edges and the empty match. The result is still nondeterministic: edges of a state may
 * overlap. It replaces a DFA that would be exponential; the parser then tracks several states at once.
 */
export function eliminateEpsilon(nfa: Nfa, budget: WorkBudget): Dfa {
  const origins = [nfa.start];
  const ids = new Map<number, number>();
  const edges: number[][] = [];
  const final: number[] = [];
  for (let state = 0; state < origins.length; state++) {
    const closure = nfa.closure([origins[state]!]);
    const triples: [number, number, number][] = [];
    for (const member of closure) {
      const list = nfa.edges[member]!;
      for (let i = 0; i < list.length; i += 3) {
        let target = ids.get(list[i + 2]!);
        if (target === undefined) {
          target = origins.push(list[i + 2]!) - 1;
          ids.set(list[i + 2]!, target);
        }
        triples.push([list[i]!, list[i + 1]!, target]);
      }
    }
    budget.spend(10 * triples.length);
    edges.push(triples.sort((a, b) => a[0] - b[0]).flat());
    final.push(state > 0 && closure.includes(nfa.end) ? 1 : 0);
  }
  return { edges, final: Uint8Array.from(final) };
}
