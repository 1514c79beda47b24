import type { Expression, Grammar } from '../expression.ts';
import { type CallGraph, copiesInAutomaton } from './call-graph.ts';

/** How the calls of a grammar are compiled. */
export interface CallPlan {
  /** The rule has no automaton of its own: it is copied into its callers. */
  isInlined(rule: number): boolean;
  /**
   * A call of `callee` that ends `owner` becomes a jump inside one automaton instead of a call: right recursion
   * turns into a loop, and what the parser must remember does not grow with the text.
   */
  isJump(owner: number, callee: number): boolean;
}

/** Rules up to this size are copied into every caller. */
const MAX_INLINE_SIZE = 16;
/** Rules with a single caller are copied up to this size and nesting. */
const MAX_SINGLE_USE_SIZE = 1000;
const MAX_NESTING = 40;

export function planCalls(grammar: Grammar, graph: CallGraph): CallPlan {
  const uses = new Float64Array(grammar.rules.length);
  for (const calls of graph.calls) for (const call of calls) uses[call.rule]! += call.copies;
  const recursive = recursiveRules(graph);
  const rightLinear = graph.components.map((members) => isRightLinear(graph, members));
  const size = new Float64Array(grammar.rules.length);
  const nesting = new Int32Array(grammar.rules.length);
  const inlined = new Uint8Array(grammar.rules.length);
  for (const members of graph.components) {
    for (const rule of members) {
      const copied = (callee: number): number => (inlined[callee] === 1 ? size[callee]! : 1);
      size[rule] = expandedSize(grammar.rules[rule]!, copied);
      for (const call of graph.calls[rule]!) {
        if (inlined[call.rule] === 1) nesting[rule] = Math.max(nesting[rule]!, nesting[call.rule]! + 1);
      }
      if (recursive[rule] === 1 || rule === grammar.root || nesting[rule]! >= MAX_NESTING) continue;
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
    const inside = calls.some((call) => graph.component[call.rule] === graph.component[rule]);
    if (inside) recursive[rule] = 1;
  });
  return recursive;
}

/** Every call that stays inside the component is the last thing its rule does: together they are regular. */
function isRightLinear(graph: CallGraph, members: readonly number[]): boolean {
  const component = graph.component[members[0]!];
  return members.every((rule) =>
    graph.calls[rule]!.every((call) => call.tail || graph.component[call.rule] !== component),
  );
}

/** About the number of automaton states an expression becomes. */
export function expandedSize(expression: Expression, sizeOfCall: (rule: number) => number): number {
  switch (expression.kind) {
    case 'bytes':
      return expression.bytes.length;
    case 'chars':
      return 1 + expression.set.length / 2;
    case 'sequence':
    case 'choice':
      return expression.items.reduce((sum, item) => sum + expandedSize(item, sizeOfCall), 1);
    case 'repeat':
      return 1 + copiesInAutomaton(expression) * expandedSize(expression.item, sizeOfCall);
    case 'rule':
      return sizeOfCall(expression.rule);
    case 'graph':
      return expression.edges.reduce(
        (sum, edge) => sum + expandedSize(edge.label, sizeOfCall),
        expression.states,
      );
  }
}
