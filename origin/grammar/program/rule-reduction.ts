import { CALL, type Nfa } from '../automaton/nfa.ts';

/** The automata of the reachable rules, by rule number. */
type RuleAutomata = ReadonlyMap<number, Nfa>;

/**
 * Adds an epsilon edge parallel to every call of a nullable rule, and returns the nullable rules. Afterwards, only the root
 * needs to match the empty text.
 */
export function bypassNullableCalls(automata: RuleAutomata): ReadonlySet<number> {
  const nullable = new Set<number>();
  const callSites = new Map<number, { caller: number; from: number; to: number }[]>();
  for (const [caller, nfa] of automata) {
    forEachCall(nfa, (from, rule, to) => {
      const sites = callSites.get(rule) ?? [];
      sites.push({ caller, from, to });
      callSites.set(rule, sites);
    });
  }
  const queue = [...automata.keys()];
  for (let rule = queue.pop(); rule !== undefined; rule = queue.pop()) {
    const nfa = automata.get(rule)!;
    if (nullable.has(rule) || !nfa.closure([nfa.start]).includes(nfa.end)) continue;
    nullable.add(rule);
    for (const { caller, from, to } of callSites.get(rule) ?? []) {
      automata.get(caller)!.addEpsilon(from, to);
      queue.push(caller);
    }
  }
  return nullable;
}

/**
 * Removes calls of unproductive rules, which match no non-empty text, and returns the productive rules. Afterwards,
 * every parse can be completed.
 */
export function removeUnproductiveCalls(automata: RuleAutomata): ReadonlySet<number> {
  const productive = new Set<number>();
  const callers = new Map<number, Set<number>>();
  for (const [caller, nfa] of automata) {
    forEachCall(nfa, (_from, rule) => {
      const known = callers.get(rule) ?? new Set();
      callers.set(rule, known.add(caller));
    });
  }
  const queue = [...automata.keys()];
  for (let rule = queue.pop(); rule !== undefined; rule = queue.pop()) {
    if (productive.has(rule) || !matchesSomething(automata.get(rule)!, productive)) continue;
    productive.add(rule);
    queue.push(...(callers.get(rule) ?? []));
  }
  for (const nfa of automata.values()) dropCalls(nfa, productive);
  return productive;
}

function forEachCall(nfa: Nfa, visit: (from: number, rule: number, to: number) => void): void {
  nfa.edges.forEach((edges, from) => {
    for (let i = 0; i < edges.length; i += 3)
      if (edges[i]! >= CALL) visit(from, edges[i]! - CALL, edges[i + 2]!);
  });
}

/** Whether a path with at least one symbol leads from start to end. Calls count only if the rule is productive. */
function matchesSomething(nfa: Nfa, productive: ReadonlySet<number>): boolean {
  const targets = (state: number): number[] => {
    const edges = nfa.edges[state]!;
    const found: number[] = [];
    for (let i = 0; i < edges.length; i += 3) {
      if (edges[i]! < CALL || productive.has(edges[i]! - CALL)) found.push(edges[i + 2]!);
    }
    return found;
  };
  // States reached before and after the first symbol.
  const before = new Set([nfa.start]);
  const after = new Set<number>();
  for (const state of before) {
    for (const next of nfa.epsilon[state]!) before.add(next);
    for (const next of targets(state)) after.add(next);
  }
  for (const state of after) {
    for (const next of nfa.epsilon[state]!) after.add(next);
    for (const next of targets(state)) after.add(next);
  }
  return after.has(nfa.end);
}

function dropCalls(nfa: Nfa, productive: ReadonlySet<number>): void {
  nfa.edges.forEach((edges, state) => {
    const kept: number[] = [];
    for (let i = 0; i < edges.length; i += 3) {
      if (edges[i]! < CALL || productive.has(edges[i]! - CALL))
        kept.push(edges[i]!, edges[i + 1]!, edges[i + 2]!);
    }
    nfa.edges[state] = kept;
  });
}
