import { codePointsByTarget } from '../automaton/dfa.ts';
import type { Nfa } from '../automaton/nfa.ts';
import { chars, EMPTY, type Expression, type GraphEdge } from '../expression.ts';
import type { WorkBudget } from '../work-budget.ts';
import { hasAnchors, wholeMatchAutomaton } from './regex-automaton.ts';
import type { RegexNode } from './regex-node.ts';

/** The texts that match a regular expression from their first to their last character. */
export function wholeMatchExpression(node: RegexNode, budget: WorkBudget): Expression {
  const bare = stripAnchors(node);
  return hasAnchors(bare) ? graphOf(wholeMatchAutomaton(bare, budget)) : expressionOf(bare);
}

/** `^…$` around the whole text says what holds anyway. */
function stripAnchors(node: RegexNode): RegexNode {
  if (node.kind === 'choice') return { kind: 'choice', items: node.items.map(stripAnchors) };
  if (node.kind === 'anchor') return { kind: 'sequence', items: [] };
  if (node.kind !== 'sequence') return node;
  const isAnchor = (item: RegexNode | undefined, at: 'start' | 'end'): boolean =>
    item?.kind === 'anchor' && item.at === at;
  let from = 0;
  let past = node.items.length;
  while (isAnchor(node.items[from], 'start')) from++;
  while (past > from && isAnchor(node.items[past - 1], 'end')) past--;
  return { kind: 'sequence', items: node.items.slice(from, past) };
}

function expressionOf(node: RegexNode): Expression {
  switch (node.kind) {
    case 'chars':
      return chars(node.set);
    case 'sequence':
    case 'choice':
      return { kind: node.kind, items: node.items.map(expressionOf) };
    case 'repeat':
      return { kind: 'repeat', item: expressionOf(node.item), min: node.min, max: node.max };
    case 'anchor':
      return EMPTY;
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
