import { determinize, eliminateEpsilon } from '../automaton/determinize.ts';
import { type Dfa, isEmptyLanguage, trim } from '../automaton/dfa.ts';
import { minimize } from '../automaton/minimize.ts';
import { CALL, type Nfa } from '../automaton/nfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import type { AnyOrder, Expression, Grammar, OrderedRules } from '../rules/expression.ts';
import { GrammarError } from '../rules/grammar-error.ts';
import type { Program } from './program.ts';
import { ruleAutomaton } from './rule-automaton.ts';
import { type CallPlan, planCalls, rewriteRepetitions, rulesInAnyOrder } from './rule-boundaries.ts';
import { bypassNullableCalls, removeUnproductiveCalls } from './rule-reduction.ts';
import { stateEquivalence } from './state-equivalence.ts';

/** If a rule's DFA exceeds this number of states and its NFA's, the rule stays nondeterministic. */
const MAX_DETERMINISTIC_STATES = 4000;

/** Each edge of a rule costs at least this much until its automaton is minimal. */
const UNITS_PER_EDGE = 50;

/**
 * Compiles a grammar to a program.
 * @throws GrammarError if no text can match
 * @throws BudgetExceeded if the grammar is too large
 */
export function lowerGrammar(source: Grammar, budget: WorkBudget): Program {
  const grammar = rewriteRepetitions(source);
  const plan = planCalls(grammar);
  const automata = reachable(grammar.root, (rule) => ruleAutomaton(grammar, rule, plan, budget));
  const nullable = bypassNullableCalls(automata);
  const productive = removeUnproductiveCalls(automata);
  const matchesEmpty = nullable.has(grammar.root);
  if (!productive.has(grammar.root) && !matchesEmpty) {
    throw new GrammarError('No text can match: the rules contradict each other or recurse without end');
  }
  budget.require(UNITS_PER_EDGE * edgesOf(automata, grammar));
  const compiled = new Map<number, Dfa>();
  const anyOrders = new Map<number, OrderedRules>();
  const queue = [grammar.root];
  for (const rule of queue) {
    if (compiled.has(rule)) continue;
    const expression = grammar.rules[rule]!;
    if (expression.kind === 'anyOrder') {
      const rules = productiveRules(expression, productive);
      anyOrders.set(rule, rules);
      compiled.set(rule, NO_EDGES);
      queue.push(...rulesInAnyOrder(rules));
      continue;
    }
    const dfa = compileRule(automata.get(rule)!, budget);
    compiled.set(rule, dfa);
    queue.push(...callsOf(dfa.edges));
  }
  const { ignoredKeywords = [], tokenNames = [], distinctRules = [] } = source;
  const names = new Map([...compiled.keys()].map((rule, index) => [rule, index]));
  return {
    ...flatten(compiled, names, matchesEmpty),
    anyOrders: new Map([...anyOrders].map(([rule, rules]) => [names.get(rule)!, renamed(rules, names)])),
    distinctRules: new Set([...distinctRules].flatMap((rule) => names.get(rule) ?? [])),
    ignoredKeywords,
    tokenNames,
  };
}

/** The static automaton of a rule whose states the runtime creates. */
const NO_EDGES: Dfa = { edges: [[]], final: Uint8Array.of(0) };

function productiveRules(
  { members, additional, ...rest }: AnyOrder,
  productive: ReadonlySet<number>,
): OrderedRules {
  return {
    ...rest,
    members: members.filter(({ rule }) => productive.has(rule)),
    additional: additional !== null && productive.has(additional) ? additional : null,
  };
}

function renamed(
  { members, additional, separator, min, max }: OrderedRules,
  names: ReadonlyMap<number, number>,
): OrderedRules {
  return {
    members: members.map(({ rule, required }) => ({ rule: names.get(rule)!, required })),
    additional: additional === null ? null : names.get(additional)!,
    separator: names.get(separator)!,
    min,
    max,
  };
}

/** Patterns are searched with up to one thread per state, so this bounds the work per byte. */
const MAX_PATTERN_STATES = 4000;
const NO_CALLS: CallPlan = { isInlined: () => false, isJump: () => false };

/**
 * Compiles expressions without calls to a program for a search: rule i is expression i.
 * @param onError called with the index and the reason if an expression cannot be searched for
 */
export function lowerPatterns(
  patterns: readonly Expression[],
  budget: WorkBudget,
  onError: (index: number, reason: string) => never,
): Program {
  let states = 0;
  const automata = new Map<number, Dfa>();
  for (const [index, pattern] of patterns.entries()) {
    const nfa = ruleAutomaton({ rules: [pattern], root: 0 }, 0, NO_CALLS, budget);
    if (nfa.closure([nfa.start]).includes(nfa.end)) onError(index, 'It matches the empty text');
    const dfa = compileRule(nfa, budget);
    if (isEmptyLanguage(dfa)) onError(index, 'No text can match');
    states += dfa.edges.length;
    if (states > MAX_PATTERN_STATES) onError(index, 'The patterns are too large together');
    automata.set(index, dfa);
  }
  const names = new Map(patterns.map((_, index) => [index, index]));
  return {
    ...flatten(automata, names, false),
    anyOrders: new Map(),
    distinctRules: new Set(),
    ignoredKeywords: [],
    tokenNames: [],
  };
}

function compileRule(nfa: Nfa, budget: WorkBudget): Dfa {
  const maxStates = Math.max(MAX_DETERMINISTIC_STATES, nfa.size);
  const dfa = determinize(nfa, { budget, maxStates, nonEmpty: true });
  return dfa === null ? trim(eliminateEpsilon(nfa, budget)) : minimize(trim(dfa), budget);
}

/** Builds the automata of all rules that are reachable from the root. */
function reachable(root: number, build: (rule: number) => Nfa): Map<number, Nfa> {
  const automata = new Map<number, Nfa>();
  const queue = [root];
  for (let rule = queue.pop(); rule !== undefined; rule = queue.pop()) {
    if (automata.has(rule)) continue;
    const nfa = build(rule);
    automata.set(rule, nfa);
    queue.push(...callsOf(nfa.edges));
  }
  return automata;
}

/** The edges of the automata that are to be made deterministic. */
function edgesOf(automata: ReadonlyMap<number, Nfa>, { rules }: Grammar): number {
  let edges = 0;
  for (const [rule, nfa] of automata) {
    if (rules[rule]!.kind !== 'anyOrder') for (const list of nfa.edges) edges += list.length / 3;
  }
  return edges;
}

function callsOf(states: readonly (readonly number[])[]): number[] {
  const rules = new Set<number>();
  for (const edges of states) {
    for (let i = 0; i < edges.length; i += 3) if (edges[i]! >= CALL) rules.add(edges[i]! - CALL);
  }
  return [...rules];
}

/**
 * Joins the automata of all rules to one set of tables. Rules are renumbered in map order; the root is first.
 */
function flatten(
  automata: ReadonlyMap<number, Dfa>,
  names: ReadonlyMap<number, number>,
  matchesEmpty: boolean,
): Omit<Program, 'ignoredKeywords' | 'tokenNames' | 'anyOrders' | 'distinctRules'> {
  const { classOf, classCount } = byteClasses([...automata.values()]);
  const ruleStart: number[] = [];
  const ruleOf: number[] = [];
  const final: number[] = [];
  const byteOffsets = [0];
  const byteEdges: number[] = [];
  const callOffsets = [0];
  const callEdges: number[] = [];
  for (const [rule, dfa] of automata) {
    const base = ruleOf.length;
    ruleStart.push(base);
    dfa.edges.forEach((edges, state) => {
      for (let i = 0; i < edges.length; i += 3) {
        const target = base + edges[i + 2]!;
        if (edges[i]! >= CALL) callEdges.push(names.get(edges[i]! - CALL)!, target);
        else byteEdges.push(classOf[edges[i]!]!, classOf[edges[i + 1]!]!, target);
      }
      ruleOf.push(names.get(rule)!);
      final.push(dfa.final[state]!);
      byteOffsets.push(byteEdges.length);
      callOffsets.push(callEdges.length);
    });
  }
  const network = {
    classOf,
    classCount,
    ruleStart: new Int32Array(ruleStart),
    ruleOf: new Int32Array(ruleOf),
    final: new Uint8Array(final),
    byteOffsets: new Int32Array(byteOffsets),
    byteEdges: new Int32Array(byteEdges),
    callOffsets: new Int32Array(callOffsets),
    callEdges: new Int32Array(callEdges),
    matchesEmpty,
  };
  return { ...network, equivalence: stateEquivalence(network) };
}

/** Byte classes are the ranges between all edge boundaries, numbered in byte order. */
function byteClasses(automata: readonly Dfa[]): { classOf: Uint8Array; classCount: number } {
  const cut = new Uint8Array(257);
  for (const { edges } of automata) {
    for (const list of edges) {
      for (let i = 0; i < list.length; i += 3) {
        if (list[i]! >= CALL) continue;
        cut[list[i]!] = 1;
        cut[list[i + 1]! + 1] = 1;
      }
    }
  }
  const classOf = new Uint8Array(256);
  let current = 0;
  for (let byte = 1; byte < 256; byte++) classOf[byte] = cut[byte] === 1 ? ++current : current;
  return { classOf, classCount: current + 1 };
}
