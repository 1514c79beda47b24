import type { Expression, Grammar, OrderedRules } from '../rules/expression.ts';

/** A reference to a rule in another rule's expression. */
interface RuleCall {
  readonly rule: number;
  /** Whether nothing follows the call in its rule. */
  readonly tail: boolean;
  /** How many copies of the call the automaton contains after repetitions are unrolled. */
  readonly copies: number;
}

export interface CallGraph {
  readonly calls: readonly (readonly RuleCall[])[];
  /** Strongly connected component of each rule. A callee's number is at most its caller's. */
  readonly component: Int32Array;
  /** Rules grouped by component, callees first. */
  readonly components: readonly (readonly number[])[];
}

export function callGraph(grammar: Grammar): CallGraph {
  const calls = grammar.rules.map((expression) => {
    const out: RuleCall[] = [];
    visitCalls(expression, true, 1, out);
    return out;
  });
  return { calls, ...connectedComponents(calls) };
}

function visitCalls(expression: Expression, tail: boolean, copies: number, out: RuleCall[]): void {
  switch (expression.kind) {
    case 'bytes':
    case 'chars':
    case 'tokens':
      return;
    case 'sequence':
      expression.items.forEach((item, i) => {
        visitCalls(item, tail && i === expression.items.length - 1, copies, out);
      });
      return;
    case 'choice':
      for (const item of expression.items) visitCalls(item, tail, copies, out);
      return;
    case 'repeat':
      visitCalls(expression.item, tail && expression.max === 1, copies * copiesInAutomaton(expression), out);
      return;
    case 'rule':
      out.push({ rule: expression.rule, tail, copies });
      return;
    case 'anyOrder':
      for (const rule of rulesInAnyOrder(expression)) out.push({ rule, tail: false, copies: 1 });
      return;
    case 'graph': {
      const { final, edges } = expression;
      const ends = !edges.some((edge) => edge.from === final);
      for (const edge of edges) visitCalls(edge.label, tail && ends && edge.to === final, copies, out);
    }
  }
}

export function rulesInAnyOrder({ members, additional, separator }: OrderedRules): readonly number[] {
  return [...members.map(({ rule }) => rule), ...(additional === null ? [] : [additional]), separator];
}

/** How many copies of the repeated part the automaton contains. */
export function copiesInAutomaton({ min, max }: { readonly min: number; readonly max: number }): number {
  return Math.max(1, Number.isFinite(max) ? max : min + 1);
}

interface Frame {
  readonly rule: number;
  next: number;
}

/** Tarjan's algorithm, iterative because chains of rules can be arbitrarily long. */
function connectedComponents(calls: readonly (readonly RuleCall[])[]): Omit<CallGraph, 'calls'> {
  const index = new Int32Array(calls.length).fill(-1);
  const low = new Int32Array(calls.length);
  const component = new Int32Array(calls.length).fill(-1);
  const components: number[][] = [];
  const stack: number[] = [];
  let counter = 0;
  const enter = (rule: number): Frame => {
    index[rule] = low[rule] = counter++;
    stack.push(rule);
    return { rule, next: 0 };
  };
  const close = (rule: number): void => {
    const members: number[] = [];
    let member: number;
    do {
      member = stack.pop()!;
      component[member] = components.length;
      members.push(member);
    } while (member !== rule);
    components.push(members);
  };
  for (let root = 0; root < calls.length; root++) {
    if (index[root] !== -1) continue;
    const frames = [enter(root)];
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      const callee = calls[frame.rule]![frame.next++];
      if (callee === undefined) {
        frames.pop();
        if (low[frame.rule] === index[frame.rule]) close(frame.rule);
        const parent = frames.at(-1);
        if (parent) low[parent.rule] = Math.min(low[parent.rule]!, low[frame.rule]!);
      } else if (index[callee.rule] === -1) {
        frames.push(enter(callee.rule));
      } else if (component[callee.rule] === -1) {
        low[frame.rule] = Math.min(low[frame.rule]!, index[callee.rule]!);
      }
    }
  }
  return { component, components };
}
