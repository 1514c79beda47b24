import type { WorkBudget } from '../work-budget.ts';
import { FIRST_STATE, type StateTable } from './state-table.ts';

/** Makes a state of one table, and all states it refers to, in another table of the same program. */
export function transferState(from: StateTable, state: number, to: StateTable, budget: WorkBudget): number {
  const needed = new Set([state]);
  for (const member of needed) {
    const items = from.items(member);
    for (let i = 1; i < items.length; i += 2) needed.add(items[i]!);
  }
  // An origin is older than the states that refer to it, so ascending order meets it first.
  const ordered = [...needed].sort((a, b) => a - b);
  const renamed = new Map<number, number>();
  for (const member of ordered) {
    budget.spend(20 + from.items(member).length);
    const items = Array.from(from.items(member), (value, i) => (i % 2 === 0 ? value : renamed.get(value)!));
    // Reserved numbers are the same in every table.
    renamed.set(member, member < FIRST_STATE ? member : to.intern(items, from.flags.data[member]!));
  }
  return renamed.get(state)!;
}
