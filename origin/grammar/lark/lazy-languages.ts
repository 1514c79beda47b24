import { ALL_CODE_POINTS } from '../automaton/code-points.ts';
import { complement, type Dfa, intersect, trim } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';

/** The texts of a language of which no shorter beginning belongs to it. */
export function shortestMatches({ edges, final }: Dfa): Dfa {
  return trim({ edges: edges.map((list, state) => (final[state] === 1 ? [] : list)), final });
}

/** The texts of a language that do not begin with a text of `ends`; if `mayEqual`, they may be one. */
export function cutAtMatch(language: Dfa, ends: Dfa, mayEqual: boolean, budget: WorkBudget): Dfa {
  const beyond = ends.edges.length;
  const intoBeyond = [0, 2].flatMap((i) => [ALL_CODE_POINTS[i]!, ALL_CODE_POINTS[i + 1]!, beyond]);
  const edges = ends.edges.map((list, state) => (ends.final[state] === 1 ? intoBeyond : list));
  const final = [...(mayEqual ? ends.final.map(() => 0) : ends.final), 1];
  const excluded: Dfa = { edges: [...edges, intoBeyond], final: Uint8Array.from(final) };
  return intersect(language, complement(excluded), budget);
}

/** The texts of `body` that a text of `stop` completes to one of `whole`. */
export function withoutStop(whole: Dfa, body: Dfa, stop: Dfa, budget: WorkBudget): Dfa {
  const final = Uint8Array.from(whole.edges, (_, state) => {
    const completed = intersect({ ...whole, ...startingAt(whole, state) }, stop, budget);
    return completed.edges[0]!.length > 0 || completed.final[0] === 1 ? 1 : 0;
  });
  return intersect(trim({ edges: whole.edges, final }), body, budget);
}

/** The automaton with states 0 and `start` exchanged. */
function startingAt({ edges, final }: Dfa, start: number): Dfa {
  const swap = (state: number): number => (state === 0 ? start : state === start ? 0 : state);
  const renamed = edges.map((_, state) =>
    edges[swap(state)]!.map((value, i) => (i % 3 === 2 ? swap(value) : value)),
  );
  return { edges: renamed, final: Uint8Array.from(edges, (_, state) => final[swap(state)]!) };
}
