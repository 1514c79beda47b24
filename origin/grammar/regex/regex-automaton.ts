import { rangesOf } from '../automaton/code-points.ts';
import { codePointsByTarget } from '../automaton/dfa.ts';
import { CALL, Nfa } from '../automaton/nfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';
import { chars, EMPTY, type Expression, type GraphEdge } from '../rules/expression.ts';
import { ANYTHING, anchorAsLook, resolveLookArounds, type Surroundings } from './look-around.ts';
import type { LookAround, RegexNode } from './regex-parser.ts';

/** The expression is the whole text. */
const WHOLE: Surroundings = { before: 'nothing', ends: true, anchored: true };

/**
 * An automaton over code points that accepts texts that match as a whole.
 * @throws GrammarError if a look-around depends on text outside, which `around` says to exist
 */
export function wholeMatchAutomaton(node: RegexNode, budget: WorkBudget, around = WHOLE): Nfa {
  const nfa = new Nfa(budget);
  const looks: LookAround[] = [];
  addNode({ nfa, looks }, node, nfa.start, nfa.end);
  if (looks.length === 0) return nfa;
  const automatonOf = (inner: RegexNode, innerAround: Surroundings): Nfa =>
    wholeMatchAutomaton(inner, budget, innerAround);
  return resolveLookArounds(nfa, looks, around, automatonOf, budget);
}

/** An automaton over code points that accepts texts that contain a match, like JSON Schema's `pattern`. */
export const searchAutomaton = (node: RegexNode, budget: WorkBudget): Nfa =>
  wholeMatchAutomaton({ kind: 'sequence', items: [ANYTHING, node, ANYTHING] }, budget);

/**
 * Whether an automaton is needed, because of anchors and look-arounds: an expression tree cannot say the
 * same.
 */
export function needsAutomaton(node: RegexNode): boolean {
  if (node.kind === 'sequence' || node.kind === 'choice') return node.items.some(needsAutomaton);
  return node.kind === 'repeat' ? needsAutomaton(node.item) : node.kind !== 'chars';
}

/** An automaton in construction. Edges of CALL + i are passed only where `looks[i]` holds. */
interface Construction {
  readonly nfa: Nfa;
  readonly looks: LookAround[];
}

/** Equal look-arounds share a number. An error names the first of them. */
function numberOf(look: LookAround, looks: LookAround[]): number {
  const index = looks.findIndex(
    ({ ahead, negative, item }) => ahead === look.ahead && negative === look.negative && item === look.item,
  );
  return index === -1 ? looks.push(look) - 1 : index;
}

function addNode(construction: Construction, node: RegexNode, from: number, to: number): void {
  const { nfa, looks } = construction;
  switch (node.kind) {
    case 'chars':
      for (const [lo, hi] of rangesOf(node.set)) nfa.addEdge(from, lo, hi, to);
      return;
    case 'anchor':
    case 'look': {
      const symbol = CALL + numberOf(node.kind === 'look' ? node : anchorAsLook(node), looks);
      nfa.addEdge(from, symbol, symbol, to);
      return;
    }
    case 'automaton': {
      const states = Array.from(node.automaton.edges, () => nfa.addState());
      nfa.addEpsilon(from, states[0]!);
      node.automaton.edges.forEach((edges, state) => {
        if (node.automaton.final[state] === 1) nfa.addEpsilon(states[state]!, to);
        for (let i = 0; i < edges.length; i += 3)
          nfa.addEdge(states[state]!, edges[i]!, edges[i + 1]!, states[edges[i + 2]!]!);
      });
      return;
    }
    case 'choice':
      for (const item of node.items) addNode(construction, item, from, to);
      return;
    case 'sequence': {
      let state = from;
      for (const item of node.items) {
        const next = nfa.addState();
        addNode(construction, item, state, next);
        state = next;
      }
      nfa.addEpsilon(state, to);
      return;
    }
    case 'repeat':
      nfa.addRepeat(from, to, node, (start, end) => addNode(construction, node.item, start, end));
  }
}

/**
 * The expression of the texts that match as a whole.
 * @throws GrammarError if a look-around depends on text outside, which `around` says to exist
 */
export function wholeMatchExpression(node: RegexNode, budget: WorkBudget, around = WHOLE): Expression {
  const bare = stripAnchors(node);
  return needsAutomaton(bare)
    ? graphOf(wholeMatchAutomaton(bare, budget, around))
    : expressionOf(bare, budget);
}

/** Removes `^` and `$` at the ends, which a whole match implies. */
function stripAnchors(node: RegexNode): RegexNode {
  if (node.kind === 'choice') return { kind: 'choice', items: node.items.map(stripAnchors) };
  if (node.kind === 'anchor') return { kind: 'sequence', items: [] };
  if (node.kind !== 'sequence') return node;
  const isAnchor = (item: RegexNode | undefined, at: 'start' | 'end'): boolean =>
    item?.kind === 'anchor' && item.at === at;
  let from = 0;
  let end = node.items.length;
  while (isAnchor(node.items[from], 'start')) from++;
  while (end > from && isAnchor(node.items[end - 1], 'end')) end--;
  return { kind: 'sequence', items: node.items.slice(from, end) };
}

function expressionOf(node: RegexNode, budget: WorkBudget): Expression {
  budget.spend(10);
  switch (node.kind) {
    case 'chars':
      return chars(node.set);
    case 'sequence':
    case 'choice':
      return { kind: node.kind, items: node.items.map((item) => expressionOf(item, budget)) };
    case 'repeat':
      return { kind: 'repeat', item: expressionOf(node.item, budget), min: node.min, max: node.max };
    default:
      throw new Error('Only an automaton expresses this node');
  }
}

function graphOf(nfa: Nfa): Expression {
  const edges: GraphEdge[] = [];
  for (let from = 0; from < nfa.size; from++) {
    for (const to of nfa.epsilon[from]!) edges.push({ from, to, label: EMPTY });
    for (const [to, set] of codePointsByTarget(nfa.edges[from]!)) edges.push({ from, to, label: chars(set) });
  }
  return { kind: 'graph', states: nfa.size, edges, final: nfa.end };
}
