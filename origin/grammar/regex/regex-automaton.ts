import { ALL_CODE_POINTS, rangesOf } from '../automaton/code-points.ts';
import { codePointsByTarget } from '../automaton/dfa.ts';
import { CALL, Nfa } from '../automaton/nfa.ts';
import { chars, EMPTY, type Expression, type GraphEdge } from '../expression.ts';
import type { WorkBudget } from '../work-budget.ts';
import type { RegexNode } from './regex-parser.ts';

/** Symbols of anchors until `resolveAnchors` removes them. */
const AT_START = CALL;
const AT_END = CALL + 1;

/** An automaton over code points that accepts texts that match as a whole. */
export function wholeMatchAutomaton(node: RegexNode, budget: WorkBudget): Nfa {
  const nfa = new Nfa(budget);
  addNode(nfa, node, nfa.start, nfa.end);
  return hasAnchors(node) ? resolveAnchors(nfa, budget) : nfa;
}

/** An automaton over code points that accepts texts that contain a match, like JSON Schema's `pattern`. */
export function searchAutomaton(node: RegexNode, budget: WorkBudget): Nfa {
  const anything: RegexNode = {
    kind: 'repeat',
    item: { kind: 'chars', set: ALL_CODE_POINTS },
    min: 0,
    max: Number.POSITIVE_INFINITY,
  };
  return wholeMatchAutomaton({ kind: 'sequence', items: [anything, node, anything] }, budget);
}

export function hasAnchors(node: RegexNode): boolean {
  if (node.kind === 'sequence' || node.kind === 'choice') return node.items.some(hasAnchors);
  return node.kind === 'repeat' ? hasAnchors(node.item) : node.kind === 'anchor';
}

function addNode(nfa: Nfa, node: RegexNode, from: number, to: number): void {
  switch (node.kind) {
    case 'chars':
      for (const [lo, hi] of rangesOf(node.set)) nfa.addEdge(from, lo, hi, to);
      return;
    case 'anchor': {
      const symbol = node.at === 'start' ? AT_START : AT_END;
      nfa.addEdge(from, symbol, symbol, to);
      return;
    }
    case 'choice':
      for (const item of node.items) addNode(nfa, item, from, to);
      return;
    case 'sequence': {
      let state = from;
      for (const item of node.items) {
        const next = nfa.addState();
        addNode(nfa, item, state, next);
        state = next;
      }
      nfa.addEpsilon(state, to);
      return;
    }
    case 'repeat':
      nfa.addRepeat(from, to, node, (start, end) => addNode(nfa, node.item, start, end));
  }
}

/** Whether a character was read before, and whether `$` forbids further ones. */
const PHASES = [
  { read: false, closed: false },
  { read: true, closed: false },
  { read: false, closed: true },
  { read: true, closed: true },
] as const;

/** The product with the four phases. `^` passes only before the first character, `$` only after the last. */
function resolveAnchors(nfa: Nfa, budget: WorkBudget): Nfa {
  const out = new Nfa(budget);
  const at = (state: number, phase: number): number => 2 + 4 * state + phase;
  for (let i = 0; i < 4 * nfa.size; i++) out.addState();
  out.addEpsilon(out.start, at(nfa.start, 0));
  PHASES.forEach(({ read, closed }, phase) => {
    out.addEpsilon(at(nfa.end, phase), out.end);
    const afterReading = 1;
    const afterEnd = read ? 3 : 2;
    for (let state = 0; state < nfa.size; state++) {
      for (const next of nfa.epsilon[state]!) out.addEpsilon(at(state, phase), at(next, phase));
      const edges = nfa.edges[state]!;
      for (let i = 0; i < edges.length; i += 3) {
        const lo = edges[i]!;
        const to = edges[i + 2]!;
        if (lo === AT_START) {
          if (!read) out.addEpsilon(at(state, phase), at(to, phase));
        } else if (lo === AT_END) out.addEpsilon(at(state, phase), at(to, afterEnd));
        else if (!closed) out.addEdge(at(state, phase), lo, edges[i + 1]!, at(to, afterReading));
      }
    }
  });
  return out;
}

/** The expression of the texts that match as a whole. */
export function wholeMatchExpression(node: RegexNode, budget: WorkBudget): Expression {
  const bare = stripAnchors(node);
  return hasAnchors(bare) ? graphOf(wholeMatchAutomaton(bare, budget)) : expressionOf(bare);
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
