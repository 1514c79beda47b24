import { CALL, type Nfa } from '../automaton/nfa.ts';

/** The automata of the reachable rules, by rule number. */
type RuleAutomata = ReadonlyMap<number, Nfa>;

/**
 * Adds an epsilon edge parallel to every call of a nullable rule, and returns the nullable rules. Afterwards,
 * only the root needs to match the empty text.
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
 * Removes calls of unproductive rules, which match no non-empty text, and returns the productive rules.
 * Afterwards, every parse can be completed.
 */
export function removeUnproductiveCalls(automata: RuleAutomata): ReadonlySet<number> {
  const productive = productiveRules(automata);
  if (productive.size < automata.size) for (const nfa of automata.values()) dropCalls(nfa, productive);
  return productive;
}

/** Marks of a state: a path leads to it, and one with at least one symbol does. */
const REACHED = 1;
const REACHED_BY_SYMBOL = 2;

/**
 * The rules with a path of at least one symbol from start to end, on which all called rules are productive.
 * Each state is followed once per mark, however many rules its rule calls.
 */
function productiveRules(automata: RuleAutomata): ReadonlySet<number> {
  const productive = new Set<number>();
  const marks = new Map(Array.from(automata, ([rule, nfa]) => [rule, new Uint8Array(nfa.size)]));
  /** Marked states whose edges are not yet followed: pairs of rule and state. */
  const queue: number[] = [];
  /** By rule: pairs of caller and state, to be marked once the rule is productive. */
  const waiting = new Map<number, number[]>();
  const reach = (rule: number, state: number, mark: number): void => {
    const marksOfRule = marks.get(rule)!;
    if (marksOfRule[state]! >= mark) return;
    marksOfRule[state] = mark;
    queue.push(rule, state);
  };
  const complete = (rule: number): void => {
    productive.add(rule);
    const places = waiting.get(rule) ?? [];
    waiting.delete(rule);
    for (let i = 0; i < places.length; i += 2) reach(places[i]!, places[i + 1]!, REACHED_BY_SYMBOL);
  };
  const follow = (rule: number, state: number): void => {
    const nfa = automata.get(rule)!;
    const mark = marks.get(rule)![state]!;
    if (state === nfa.end && mark === REACHED_BY_SYMBOL && !productive.has(rule)) complete(rule);
    for (const next of nfa.epsilon[state]!) reach(rule, next, mark);
    const edges = nfa.edges[state]!;
    for (let i = 0; i < edges.length; i += 3) {
      const called = edges[i]! - CALL;
      if (called < 0 || productive.has(called)) reach(rule, edges[i + 2]!, REACHED_BY_SYMBOL);
      else getOrAdd(waiting, called).push(rule, edges[i + 2]!);
    }
  };
  for (const [rule, nfa] of automata) reach(rule, nfa.start, REACHED);
  while (queue.length > 0) {
    const state = queue.pop()!;
    follow(queue.pop()!, state);
  }
  return productive;
}

function getOrAdd(lists: Map<number, number[]>, key: number): number[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

function forEachCall(nfa: Nfa, visit: (from: number, rule: number, to: number) => void): void {
  nfa.edges.forEach((edges, from) => {
    for (let i = 0; i < edges.length; i += 3)
      if (edges[i]! >= CALL) visit(from, edges[i]! - CALL, edges[i + 2]!);
  });
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
