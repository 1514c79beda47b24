import type { WorkBudget } from '../work-budget.ts';
import type { Dfa } from './dfa.ts';
import type { Nfa } from './nfa.ts';

/**
 * The same automaton without empty edges and without its empty match, still nondeterministic: edges of a state may
 * overlap. Used where the deterministic form would be exponential; the parser then tracks several states at once.
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
