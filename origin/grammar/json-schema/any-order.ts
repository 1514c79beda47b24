import { EMPTY, type Expression, type Graph, type GraphEdge } from '../expression.ts';
import type { SchemaContext } from './schema-context.ts';

/** Most members that can be tracked: 2^12 sets of them. */
export const MAX_ANY_ORDER = 12;
/** Most edges of all such automata of one schema; an object beyond them has its properties in order. */
export const MAX_ANY_ORDER_EDGES = 50_000;

export interface Member {
  readonly label: Expression;
  readonly required: boolean;
}

export interface MembersInAnyOrder {
  readonly members: readonly Member[];
  /** Further members, of which any number may be written anywhere; null if there are none. They do not count. */
  readonly other: Expression | null;
  /** Least and most members written. */
  readonly min: number;
  readonly max: number;
}

/**
 * Members in any order with commas in between, each at most once: an automaton over the set of those written, and whether
 * a comma was written after it.
 */
export function anyOrder({ members, other, min, max }: MembersInAnyOrder, context: SchemaContext): Graph {
  const labels = members.map(({ label }) => context.shared(label));
  const rest = other === null ? null : context.shared(other);
  const comma = context.shared(context.json.comma);
  const sets = 2 ** members.length;
  const [start, final] = [0, 2 * sets + 1];
  const written = (set: number): number => 1 + set;
  const afterComma = (set: number): number => 1 + sets + set;
  const required = members.reduce((set, member, i) => (member.required ? set | (1 << i) : set), 0);
  const edges: GraphEdge[] = [];
  const add = (from: number, to: number, label: Expression): void => {
    context.budget.spend(20);
    edges.push({ from, to, label });
  };
  const addMembers = (from: number, set: number): void => {
    labels.forEach((label, i) => {
      if ((set & (1 << i)) === 0) add(from, written(set | (1 << i)), label);
    });
    if (rest !== null) add(from, written(set), rest);
  };
  const mayEnd = (set: number): boolean => (set & required) === required && sizeOf(set) >= min;
  if (mayEnd(0)) add(start, final, EMPTY);
  if (max > 0) addMembers(start, 0);
  for (let set = 0; set < sets; set++) {
    if (sizeOf(set) > max) continue;
    if (mayEnd(set)) add(written(set), final, EMPTY);
    if (sizeOf(set) === max && rest === null) continue;
    add(written(set), afterComma(set), comma);
    addMembers(afterComma(set), set);
  }
  return { kind: 'graph', states: final + 1, edges, final };
}

function sizeOf(set: number): number {
  let size = 0;
  for (let rest = set; rest > 0; rest &= rest - 1) size++;
  return size;
}
