import { EMPTY, type Expression, NOTHING, optional, rule } from '../rules/expression.ts';
import type { SchemaContext } from './schema-context.ts';

interface MembersInAnyOrder {
  readonly members: readonly { readonly rule: number; readonly required: boolean }[];
  /** The rule of further members, of which any number may be written anywhere; null if there are none. */
  readonly additional: number | null;
  /** Least and most members written. */
  readonly min: number;
  readonly max: number;
}

/** Members in any order with commas in between, each at most once. */
export function anyOrder(
  { members, additional, min, max }: MembersInAnyOrder,
  context: SchemaContext,
): Expression {
  const required = members.filter((member) => member.required).length;
  const available = members.length + (additional === null ? 0 : Number.POSITIVE_INFINITY);
  if (Math.max(min, required) > Math.min(max, available)) return NOTHING;
  const mayBeEmpty = required === 0 && min === 0;
  if (available === 0 || max === 0) return EMPTY;
  context.budget.spend(20 * members.length);
  const list = context.addRule({
    kind: 'anyOrder',
    members,
    additional,
    separator: context.sharedRule('comma', () => context.json.comma),
    min,
    max,
  });
  return mayBeEmpty ? optional(rule(list)) : rule(list);
}
