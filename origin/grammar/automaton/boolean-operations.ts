import type { WorkBudget } from '../work-budget.ts';
import { ALL_CODE_POINTS } from './code-points.ts';
import { appendEdge, type Dfa, trim } from './dfa.ts';

/** The texts that both automata match. */
export function intersect(a: Dfa, b: Dfa, budget: WorkBudget): Dfa {
  const pairs: [number, number][] = [[0, 0]];
  const ids = new Map<number, number>([[0, 0]]);
  const edges: number[][] = [];
  const stateOf = (x: number, y: number): number => {
    const key = x * b.edges.length + y;
    let id = ids.get(key);
    if (id === undefined) {
      id = pairs.push([x, y]) - 1;
      ids.set(key, id);
    }
    return id;
  };
  for (let state = 0; state < pairs.length; state++) {
    const left = a.edges[pairs[state]![0]]!;
    const right = b.edges[pairs[state]![1]]!;
    budget.spend(50 + 20 * (left.length + right.length));
    const out: number[] = [];
    for (let i = 0, j = 0; i < left.length && j < right.length; ) {
      const lo = Math.max(left[i]!, right[j]!);
      const hi = Math.min(left[i + 1]!, right[j + 1]!);
      if (lo <= hi) appendEdge(out, lo, hi, stateOf(left[i + 2]!, right[j + 2]!));
      if (left[i + 1]! < right[j + 1]!) i += 3;
      else j += 3;
    }
    edges.push(out);
  }
  const final = Uint8Array.from(pairs, ([x, y]) => a.final[x]! & b.final[y]!);
  return trim({ edges, final });
}

/** The texts over all code points that the automaton does not match. */
export function complement(dfa: Dfa): Dfa {
  const sink = dfa.edges.length;
  const edges = [...dfa.edges, []].map((list) => {
    const out: number[] = [];
    let next = 0;
    for (let i = 0; i < list.length; i += 3) {
      appendGap(out, next, list[i]! - 1, sink);
      appendEdge(out, list[i]!, list[i + 1]!, list[i + 2]!);
      next = list[i + 1]! + 1;
    }
    appendGap(out, next, 0x10ffff, sink);
    return out;
  });
  const final = Uint8Array.from(edges, (_, state) => (dfa.final[state] === 1 ? 0 : 1));
  return trim({ edges, final });
}

function appendGap(out: number[], lo: number, hi: number, target: number): void {
  for (let i = 0; i < ALL_CODE_POINTS.length; i += 2) {
    const from = Math.max(lo, ALL_CODE_POINTS[i]!);
    const past = Math.min(hi, ALL_CODE_POINTS[i + 1]!);
    if (from <= past) appendEdge(out, from, past, target);
  }
}

/** True when the automaton over code points matches the text as a whole. */
export function matches(dfa: Dfa, text: string): boolean {
  let state = 0;
  for (const char of text) {
    const codePoint = char.codePointAt(0)!;
    const edges = dfa.edges[state]!;
    let next = -1;
    for (let i = 0; i < edges.length && edges[i]! <= codePoint; i += 3) {
      if (codePoint <= edges[i + 1]!) next = edges[i + 2]!;
    }
    if (next === -1) return false;
    state = next;
  }
  return dfa.final[state] === 1;
}
