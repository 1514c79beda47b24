import { ALL_CODE_POINTS, type CodePoints } from './code-points.ts';
import type { WorkBudget } from './work-budget.ts';

/**
 * A deterministic automaton over integer symbols. State 0 is the start. A symbol without an edge is rejected.
 */
export interface Dfa {
  /** Per state: flat triples lo, hi, target; sorted by lo, disjoint. */
  readonly edges: readonly (readonly number[])[];
  /** Per state: 1 if the state is final. */
  readonly final: Uint8Array;
}

/** Removes states from which no final state can be reached. State 0 always stays. */
export function trim(dfa: Dfa): Dfa {
  const size = dfa.edges.length;
  const sources: number[][] = Array.from({ length: size }, () => []);
  dfa.edges.forEach((edges, from) => {
    for (let i = 2; i < edges.length; i += 3) sources[edges[i]!]!.push(from);
  });
  const alive = dfa.final.slice();
  const queue: number[] = [];
  alive.forEach((isAlive, state) => {
    if (isAlive === 1) queue.push(state);
  });
  for (const state of queue) {
    for (const source of sources[state]!) {
      if (alive[source] === 1) continue;
      alive[source] = 1;
      queue.push(source);
    }
  }
  if (queue.length === size) return dfa;
  const renamed = new Int32Array(size).fill(-1);
  const kept: number[] = [];
  for (let state = 0; state < size; state++) {
    if (state === 0 || alive[state] === 1) renamed[state] = kept.push(state) - 1;
  }
  return {
    edges: kept.map((state) => keepTargets(dfa.edges[state]!, renamed, alive)),
    final: Uint8Array.from(kept, (state) => dfa.final[state]!),
  };
}

function keepTargets(edges: readonly number[], renamed: Int32Array, alive: Uint8Array): number[] {
  const out: number[] = [];
  for (let i = 0; i < edges.length; i += 3) {
    if (alive[edges[i + 2]!] === 1) out.push(edges[i]!, edges[i + 1]!, renamed[edges[i + 2]!]!);
  }
  return out;
}

/** Whether a trimmed automaton accepts no text. */
export function isEmptyLanguage(dfa: Dfa): boolean {
  return dfa.final[0] === 0 && dfa.edges[0]!.length === 0;
}

/** Groups a state's edges (triples lo, hi, target over code points) by target. */
export function codePointsByTarget(edges: readonly number[]): Map<number, CodePoints> {
  const sets = new Map<number, number[]>();
  for (let i = 0; i < edges.length; i += 3) {
    const set = sets.get(edges[i + 2]!);
    if (set === undefined) sets.set(edges[i + 2]!, [edges[i]!, edges[i + 1]!]);
    else if (set.at(-1)! + 1 === edges[i]) set[set.length - 1] = edges[i + 1]!;
    else set.push(edges[i]!, edges[i + 1]!);
  }
  return sets;
}

/** Appends an edge. Merges it with the previous edge if both touch and have the same target. */
export function appendEdge(edges: number[], lo: number, hi: number, target: number): void {
  const end = edges.length;
  if (end > 0 && edges[end - 1] === target && edges[end - 2]! + 1 === lo) edges[end - 2] = hi;
  else edges.push(lo, hi, target);
}

/** The intersection of two languages. */
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
    budget.spend(20 + 3 * (left.length + right.length));
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

/** Returns the length of the shortest text of an automaton; Infinity if it has none. */
export function shortestText({ edges, final }: Dfa): number {
  let states = new Set([0]);
  const seen = new Set(states);
  for (let length = 0; states.size > 0; length++) {
    if ([...states].some((state) => final[state] === 1)) return length;
    const targets = [...states].flatMap((state) => edges[state]!.filter((_, i) => i % 3 === 2));
    states = new Set(targets.filter((target) => !seen.has(target)));
    for (const state of states) seen.add(state);
  }
  return Number.POSITIVE_INFINITY;
}

/** Returns the length of the longest text of a trimmed automaton; Infinity if there is none. */
export function longestText({ edges }: Dfa): number {
  const waiting = new Int32Array(edges.length);
  for (const list of edges) for (let i = 2; i < list.length; i += 3) waiting[list[i]!]!++;
  if (waiting[0]! > 0) return Number.POSITIVE_INFINITY;
  const longest = new Int32Array(edges.length);
  const order = [0];
  for (const state of order) {
    const list = edges[state]!;
    for (let i = 2; i < list.length; i += 3) {
      const target = list[i]!;
      longest[target] = Math.max(longest[target]!, longest[state]! + 1);
      if (--waiting[target]! === 0) order.push(target);
    }
  }
  // The states of a cycle are never reached without it.
  return order.length < edges.length ? Number.POSITIVE_INFINITY : Math.max(...longest);
}

/** The complement of a language over code points. */
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
    const first = Math.max(lo, ALL_CODE_POINTS[i]!);
    const last = Math.min(hi, ALL_CODE_POINTS[i + 1]!);
    if (first <= last) appendEdge(out, first, last, target);
  }
}

/** Whether an automaton over code points accepts the whole text. */
export function acceptsText(dfa: Dfa, text: string): boolean {
  let state = 0;
  for (const char of text) {
    state = step(dfa, state, char.codePointAt(0)!);
    if (state === -1) return false;
  }
  return dfa.final[state] === 1;
}

/** Returns the state after a code point; −1 = none. */
export function step(dfa: Dfa, state: number, codePoint: number): number {
  const edges = dfa.edges[state]!;
  for (let i = 0; i < edges.length && edges[i]! <= codePoint; i += 3) {
    if (codePoint <= edges[i + 1]!) return edges[i + 2]!;
  }
  return -1;
}
