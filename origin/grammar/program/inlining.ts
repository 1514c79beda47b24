import type { Expression, Grammar } from '../rules/expression.ts';
import { type CallGraph, copiesInAutomaton } from './call-graph.ts';

/** Decides how each call of a rule is compiled. */
export interface CallPlan {
  /** Whether the rule is copied into its callers instead of having its own automaton. */
  isInlined(rule: number): boolean;
  /**
   * Whether a tail call of `callee` in `owner` becomes a jump within one automaton. Right recursion then is a
   * loop, and parser states do not grow with the text.
   */
  isJump(owner: number, callee: number): boolean;
}

/** Maximum size of rules that are copied into every caller. */
const MAX_INLINE_SIZE = 16;
/** Maximum size and nesting of rules with one caller that are copied into it. */
const MAX_SINGLE_USE_SIZE = 1000;
const MAX_NESTING = 40;

export function planCalls(grammar: Grammar, graph: CallGraph): CallPlan {
  const uses = new Float64Array(grammar.rules.length);
  for (const calls of graph.calls) for (const callee of calls) uses[callee.rule]! += callee.copies;
  const recursive = recursiveRules(graph);
  const rightLinear = graph.components.map((members) => isRightLinear(graph, members));
  const size = new Float64Array(grammar.rules.length);
  const nesting = new Int32Array(grammar.rules.length);
  const inlined = new Uint8Array(grammar.rules.length);
  for (const members of graph.components) {
    for (const rule of members) {
      const copied = (callee: number): number => (inlined[callee] === 1 ? size[callee]! : 1);
      size[rule] = expandedSize(grammar.rules[rule]!, copied);
      for (const callee of graph.calls[rule]!) {
        if (inlined[callee.rule] === 1) nesting[rule] = Math.max(nesting[rule]!, nesting[callee.rule]! + 1);
      }
      const isFixed = rule === grammar.root || grammar.distinctRules?.has(rule) === true;
      if (recursive[rule] === 1 || isFixed || nesting[rule]! >= MAX_NESTING) continue;
      if (size[rule]! <= (uses[rule] === 1 ? MAX_SINGLE_USE_SIZE : MAX_INLINE_SIZE)) inlined[rule] = 1;
    }
  }
  return {
    isInlined: (rule) => inlined[rule] === 1,
    isJump: (owner, callee) =>
      owner === callee ||
      (graph.component[owner] === graph.component[callee] && rightLinear[graph.component[owner]!]!),
  };
}

function recursiveRules(graph: CallGraph): Uint8Array {
  const recursive = new Uint8Array(graph.calls.length);
  graph.calls.forEach((calls, rule) => {
    const inside = calls.some((callee) => graph.component[callee.rule] === graph.component[rule]);
    if (inside) recursive[rule] = 1;
  });
  return recursive;
}

/** Whether all calls within the component are tail calls, so that the component is regular. */
function isRightLinear(graph: CallGraph, members: readonly number[]): boolean {
  const component = graph.component[members[0]!];
  return members.every((rule) =>
    graph.calls[rule]!.every((callee) => callee.tail || graph.component[callee.rule] !== component),
  );
}

/** Estimates the number of automaton states of an expression. */
export function expandedSize(expression: Expression, sizeOfCall: (rule: number) => number): number {
  switch (expression.kind) {
    case 'bytes':
      return expression.bytes.length;
    case 'chars':
      return 1 + expression.set.length / 2;
    case 'tokens':
      return 4 + 2 * expression.ids.length;
    case 'sequence':
    case 'choice':
      return expression.items.reduce((sum, item) => sum + expandedSize(item, sizeOfCall), 1);
    case 'repeat':
      return 1 + copiesInAutomaton(expression) * expandedSize(expression.item, sizeOfCall);
    case 'rule':
      return sizeOfCall(expression.rule);
    case 'anyOrder':
      return Number.POSITIVE_INFINITY;
    case 'graph':
      return expression.edges.reduce(
        (sum, edge) => sum + expandedSize(edge.label, sizeOfCall),
        expression.states,
      );
  }
}
