import type { Limits } from '@continuo/shared/tenant.ts';
import type { Amounts } from '../../env/limiter-protocol.ts';
import type { Window } from './window.ts';

/** What budgets limit. */
export type Resource = keyof Amounts;
export const RESOURCES = ['requests', 'tokens', 'slots'] as const satisfies readonly Resource[];

/** Amounts to charge. An absent resource is not charged; a negative amount is refunded. */
export type Cost = { readonly [R in Resource]?: number };

/** All budgets of a tenant or key. A budget without a limit counts as well, because a limit may be set later. */
export const BUDGETS = [
  { name: 'requests', resource: 'requests', window: 'minute', limit: 'requestsPerMinute' },
  { name: 'tokens', resource: 'tokens', window: 'minute', limit: 'tokensPerMinute' },
  { name: 'month', resource: 'tokens', window: 'month', limit: 'tokensPerMonth' },
  { name: 'day', resource: 'tokens', window: 'day', limit: 'tokensPerDay' },
  { name: 'concurrency', resource: 'slots', window: 'ever', limit: 'concurrentRequests' },
] as const satisfies readonly {
  readonly name: string;
  readonly resource: Resource;
  readonly window: Window;
  readonly limit: keyof Limits;
}[];

export type Budget = (typeof BUDGETS)[number];
export type BudgetName = Budget['name'];

export const budgetOf = (name: BudgetName): Budget => BUDGETS.find((budget) => budget.name === name)!;
