import {
  choice,
  type Expression,
  type Grammar,
  GrammarBuilder,
  type OrderedRules,
  repeat,
  sequence,
} from '../rules/expression.ts';

/**
 * Counted repetitions are unrolled up to this number of states. Beyond it, the repeated part becomes a rule.
 */
const MAX_EXPANDED_STATES = 300;
/** Beyond this count, the repetition is halved repeatedly; each half is a rule. */
const MAX_UNROLLED = 1024;

/** Rewrites counted repetitions so that no automaton grows out of proportion to the source. */
export function rewriteRepetitions(grammar: Grammar): Grammar {
  const builder = new GrammarBuilder();
  for (const _ of grammar.rules) builder.declare();
  grammar.rules.forEach((expression, index) => {
    builder.define(index, rewrite(expression, builder));
  });
  return { ...grammar, rules: builder.build(grammar.root).rules };
}

function rewrite(expression: Expression, builder: GrammarBuilder): Expression {
  switch (expression.kind) {
    case 'sequence':
    case 'choice':
      return { kind: expression.kind, items: expression.items.map((item) => rewrite(item, builder)) };
    case 'graph': {
      const edges = expression.edges.map((edge) => ({ ...edge, label: rewrite(edge.label, builder) }));
      return { ...expression, edges };
    }
    case 'repeat':
      return rewriteRepeat(rewrite(expression.item, builder), expression.min, expression.max, builder);
    default:
      return expression;
  }
}

function rewriteRepeat(item: Expression, min: number, max: number, builder: GrammarBuilder): Expression {
  const count = Number.isFinite(max) ? max : min;
  const size = expandedSize(item, () => 1);
  if (count <= 1 || size * count <= MAX_EXPANDED_STATES) return repeat(item, min, max);
  const unit = item.kind === 'rule' ? item : builder.add(item);
  if (count <= MAX_UNROLLED) return repeat(unit, min, max);
  const { exactly, upTo } = halving(unit, builder);
  const rest = Number.isFinite(max) ? upTo(max - min) : repeat(unit, 0, Number.POSITIVE_INFINITY);
  return sequence(exactly(min), rest);
}

/** Repetitions of one unit, in size logarithmic in the count. */
function halving(unit: Expression, builder: GrammarBuilder) {
  const rules = new Map<string, Expression>();
  const ruleFor = (key: string, make: () => Expression): Expression => {
    const rule = rules.get(key) ?? builder.add(make());
    rules.set(key, rule);
    return rule;
  };
  const exactly = (count: number): Expression => {
    if (count <= MAX_UNROLLED) return repeat(unit, count, count);
    const half = Math.floor(count / 2);
    return ruleFor(`${count}`, () => sequence(exactly(half), exactly(count - half)));
  };
  const upTo = (count: number): Expression => {
    if (count <= MAX_UNROLLED) return repeat(unit, 0, count);
    const half = Math.floor(count / 2);
    return ruleFor(`0-${count}`, () => choice([upTo(half), sequence(exactly(half), upTo(count - half))]));
  };
  return { exactly, upTo };
}

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

export function planCalls(grammar: Grammar): CallPlan {
  const graph = callGraph(grammar);
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
function expandedSize(expression: Expression, sizeOfCall: (rule: number) => number): number {
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

/** A reference to a rule in another rule's expression. */
interface RuleCall {
  readonly rule: number;
  /** Whether nothing follows the call in its rule. */
  readonly tail: boolean;
  /** How many copies of the call the automaton contains after repetitions are unrolled. */
  readonly copies: number;
}

interface CallGraph {
  readonly calls: readonly (readonly RuleCall[])[];
  /** Strongly connected component of each rule. A callee's number is at most its caller's. */
  readonly component: Int32Array;
  /** Rules grouped by component, callees first. */
  readonly components: readonly (readonly number[])[];
}

function callGraph(grammar: Grammar): CallGraph {
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
function copiesInAutomaton({ min, max }: { readonly min: number; readonly max: number }): number {
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
