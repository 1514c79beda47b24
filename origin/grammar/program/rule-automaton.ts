import { type BytePath, utf8Paths } from '../automaton/byte-paths.ts';
import { rangesOf } from '../automaton/code-points.ts';
import { CALL, Nfa } from '../automaton/nfa.ts';
import { pathsOfIds } from '../automaton/token-path.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import type { AnyOrder, Expression, Grammar, Graph } from '../rules/expression.ts';
import type { CallPlan } from './rule-boundaries.ts';

/** Builds the automaton of one rule over bytes and calls. Inlined rules are copied in. */
export function ruleAutomaton(grammar: Grammar, rule: number, plan: CallPlan, budget: WorkBudget): Nfa {
  return new RuleAutomatonBuilder(grammar, rule, plan, budget).nfa;
}

function pathsOf(
  ranges: readonly number[],
  pathsOfRange: (lo: number, hi: number) => readonly BytePath[],
): BytePath[] {
  return rangesOf(ranges).flatMap(([lo, hi]) => pathsOfRange(lo, hi));
}

/** A path with the names of its suffixes: `names[i]` of the one from byte i. */
interface NamedPath {
  readonly bytes: BytePath;
  readonly names: readonly string[];
}

function named(bytes: BytePath): NamedPath {
  const names: string[] = [];
  for (let i = bytes.length - 1; i >= 0; i--) names[i] = `${bytes[i]!.join('-')},${names[i + 1] ?? ''}`;
  return { bytes, names };
}

/** The paths of sets of characters, which large languages use in many places. */
const PATHS = new WeakMap<readonly number[], NamedPath[]>();

function characterPaths(set: readonly number[]): NamedPath[] {
  const paths = PATHS.get(set) ?? pathsOf(set, utf8Paths).map(named);
  PATHS.set(set, paths);
  return paths;
}

type Repeat = Expression & { readonly kind: 'repeat' };

class RuleAutomatonBuilder {
  readonly nfa: Nfa;
  readonly #grammar: Grammar;
  readonly #owner: number;
  readonly #plan: CallPlan;
  /** Start states of rules that are jump targets. */
  readonly #entries = new Map<number, number>();
  /** By target and suffix: states within paths. */
  readonly #pathEnds = new Map<number, Map<string, number>>();

  constructor(grammar: Grammar, owner: number, plan: CallPlan, budget: WorkBudget) {
    this.nfa = new Nfa(budget);
    this.#grammar = grammar;
    this.#owner = owner;
    this.#plan = plan;
    const entry = this.#entry(owner);
    this.nfa.addEpsilon(this.nfa.start, entry);
  }

  #entry(rule: number): number {
    let entry = this.#entries.get(rule);
    if (entry === undefined) {
      entry = this.nfa.addState();
      this.#entries.set(rule, entry);
      this.#add(this.#grammar.rules[rule]!, entry, this.nfa.end, true);
    }
    return entry;
  }

  /**
   * Adds paths for an expression between two states. No added edge enters `from` or leaves `to`, except
   * jumps, which enter the start of a rule. `tail`: the rule ends at `to`.
   */
  #add(expression: Expression, from: number, to: number, tail: boolean): void {
    switch (expression.kind) {
      case 'bytes':
        this.#addBytes(expression.bytes, from, to);
        return;
      case 'chars':
        this.#addPaths(characterPaths(expression.set), from, to);
        return;
      case 'tokens':
        this.#addPaths(pathsOf(expression.ids, pathsOfIds).map(named), from, to);
        return;
      case 'sequence':
        this.#addSequence(expression.items, from, to, tail);
        return;
      case 'choice':
        for (const item of expression.items) this.#add(item, from, to, tail);
        return;
      case 'repeat':
        this.#addRepeat(expression, from, to, tail);
        return;
      case 'rule':
        this.#addCall(expression.rule, from, to, tail);
        return;
      case 'anyOrder':
        this.#addInOrder(expression, from, to);
        return;
      case 'graph':
        this.#addGraph(expression, from, to, tail);
    }
  }

  #addBytes(bytes: Uint8Array, from: number, to: number): void {
    if (bytes.length === 0) this.nfa.addEpsilon(from, to);
    let state = from;
    bytes.forEach((byte, i) => {
      const next = i === bytes.length - 1 ? to : this.nfa.addState();
      this.nfa.addEdge(state, byte, byte, next);
      state = next;
    });
  }

  /** Paths with equal suffixes and targets share states. */
  #addPaths(paths: readonly NamedPath[], from: number, to: number): void {
    let shared = this.#pathEnds.get(to);
    if (shared === undefined) {
      shared = new Map();
      this.#pathEnds.set(to, shared);
    }
    for (const { bytes, names } of paths) {
      let target = to;
      for (let i = bytes.length - 1; i > 0; i--) {
        let state = shared.get(names[i]!);
        if (state === undefined) {
          state = this.nfa.addState();
          this.nfa.addEdge(state, bytes[i]![0], bytes[i]![1], target);
          shared.set(names[i]!, state);
        }
        target = state;
      }
      this.nfa.addEdge(from, bytes[0]![0], bytes[0]![1], target);
    }
  }

  #addSequence(items: readonly Expression[], from: number, to: number, tail: boolean): void {
    if (items.length === 0) this.nfa.addEpsilon(from, to);
    let state = from;
    items.forEach((item, i) => {
      const last = i === items.length - 1;
      const next = last ? to : this.nfa.addState();
      this.#add(item, state, next, tail && last);
      state = next;
    });
  }

  #addRepeat({ item, min, max }: Repeat, from: number, to: number, tail: boolean): void {
    if (max < min) return;
    if (max !== 1) {
      this.nfa.addRepeat(from, to, { min, max }, (start, end) => this.#add(item, start, end, false));
      return;
    }
    // Only `x?` stays in tail position: nothing follows its single copy.
    const state = this.nfa.addState();
    this.nfa.addEpsilon(from, state);
    if (min === 0) this.nfa.addEpsilon(state, to);
    this.#add(item, state, to, tail);
  }

  #addCall(rule: number, from: number, to: number, tail: boolean): void {
    if (this.#plan.isInlined(rule)) this.#add(this.#grammar.rules[rule]!, from, to, tail);
    else if (tail && this.#plan.isJump(this.#owner, rule)) this.nfa.addEpsilon(from, this.#entry(rule));
    else this.nfa.addEdge(from, CALL + rule, CALL + rule, to);
  }

  /**
   * Adds the members in their order: an automaton over (members passed, members written). It stands for any
   * order when rules are reduced, because the order does not change which rules match something.
   */
  #addInOrder({ members, additional, separator, min }: AnyOrder, from: number, to: number): void {
    const states = Array.from({ length: min + 1 }, () => this.nfa.addState());
    const addCall = (rule: number, source: number, target: number): void =>
      this.nfa.addEdge(source, CALL + rule, CALL + rule, target);
    this.nfa.addEpsilon(from, states[0]!);
    let row = states;
    for (const { rule, required } of members) {
      const next = row.map(() => this.nfa.addState());
      row.forEach((state, written) => {
        addCall(rule, state, next[Math.min(min, written + 1)]!);
        if (!required) this.nfa.addEpsilon(state, next[written]!);
      });
      row = next;
    }
    const end = row[min]!;
    this.nfa.addEpsilon(end, to);
    addCall(separator, end, end);
    if (additional === null) return;
    row.forEach((state, written) => {
      addCall(additional, state, row[Math.min(min, written + 1)]!);
    });
  }

  #addGraph(graph: Graph, from: number, to: number, tail: boolean): void {
    const states = Array.from({ length: graph.states }, () => this.nfa.addState());
    const ends = !graph.edges.some((edge) => edge.from === graph.final);
    this.nfa.addEpsilon(from, states[0]!);
    this.nfa.addEpsilon(states[graph.final]!, to);
    for (const edge of graph.edges) {
      const last = tail && ends && edge.to === graph.final;
      this.#add(edge.label, states[edge.from]!, states[edge.to]!, last);
    }
  }
}
