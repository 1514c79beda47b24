import { type CodePoints, codePoints } from './code-points.ts';

/** A deterministic automaton over integer symbols; state 0 is the start. Missing edges lead nowhere. */
export interface Dfa {
  /** Per state: flat triples lo, hi, target; sorted by lo, disjoint. */
  readonly edges: readonly (readonly number[])[];
  /** Per state: 1 where a match may end. */
  readonly final: Uint8Array;
}

/** Keeps only states from which a final state can be reached; state 0 stays, even when it matches nothing. */
export function trim(dfa: Dfa): Dfa {
  const size = dfa.edges.length;
  const sources: number[][] = Array.from({ length: size }, () => []);
  dfa.edges.forEach((edges, from) => {
    for (let i = 2; i < edges.length; i += 3) sources[edges[i]!]!.push(from);
  });
  const alive = new Set<number>();
  for (let state = 0; state < size; state++) if (dfa.final[state] === 1) alive.add(state);
  for (const state of alive) for (const source of sources[state]!) alive.add(source);
  if (alive.size === size) return dfa;
  const kept = Array.from({ length: size }, (_, state) => state).filter((s) => s === 0 || alive.has(s));
  const renamed = new Int32Array(size).fill(-1);
  kept.forEach((state, index) => {
    renamed[state] = index;
  });
  return {
    edges: kept.map((state) => keepTargets(dfa.edges[state]!, renamed, alive)),
    final: Uint8Array.from(kept, (state) => dfa.final[state]!),
  };
}

function keepTargets(edges: readonly number[], renamed: Int32Array, alive: ReadonlySet<number>): number[] {
  const out: number[] = [];
  for (let i = 0; i < edges.length; i += 3) {
    if (alive.has(edges[i + 2]!)) out.push(edges[i]!, edges[i + 1]!, renamed[edges[i + 2]!]!);
  }
  return out;
}

/** True when the automaton matches nothing at all; expects a trimmed one. */
export function matchesNothing(dfa: Dfa): boolean {
  return dfa.final[0] === 0 && dfa.edges[0]!.length === 0;
}

/** Over code points: where a state's edges (triples lo, hi, target) lead, and by which code points. */
export function codePointsByTarget(edges: readonly number[]): Map<number, CodePoints> {
  const ranges = new Map<number, [number, number][]>();
  for (let i = 0; i < edges.length; i += 3) {
    const list = ranges.get(edges[i + 2]!) ?? [];
    list.push([edges[i]!, edges[i + 1]!]);
    ranges.set(edges[i + 2]!, list);
  }
  return new Map([...ranges].map(([target, list]) => [target, codePoints(list)]));
}

/** Appends an edge, merging it with the one before where they touch and lead to the same state. */
export function appendEdge(edges: number[], lo: number, hi: number, target: number): void {
  const end = edges.length;
  if (end > 0 && edges[end - 1] === target && edges[end - 2]! + 1 === lo) edges[end - 2] = hi;
  else edges.push(lo, hi, target);
}
