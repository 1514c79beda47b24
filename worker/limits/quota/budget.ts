import type { TenantLimits } from '@continuo/shared/tenant.ts';
import type { Window } from './window.ts';

/** What a request spends: tokens, and micro-units of the currency. */
export interface Spend {
  readonly tokens: number;
  readonly money: number;
}

/** Amounts of a slice; null = no limit. */
export interface Amounts {
  requests: number | null;
  tokens: number | null;
  money: number | null;
  slots: number | null;
}

/** What budgets limit. */
export type Resource = keyof Amounts;
export const RESOURCES = ['requests', 'tokens', 'money', 'slots'] as const satisfies readonly Resource[];

/** Amounts to charge; `spent`: cost of ended requests. Absent = not charged; negative = refunded. */
export type Cost = { readonly [R in Resource | 'spent']?: number };

/** All budgets of a tenant or key. One without a limit counts: it may get one later. */
export const BUDGETS = [
  { name: 'requests', resource: 'requests', window: 'minute', limit: 'requestsPerMinute' },
  { name: 'tokens', resource: 'tokens', window: 'minute', limit: 'tokensPerMinute' },
  { name: 'month', resource: 'tokens', window: 'month', limit: 'tokensPerMonth' },
  { name: 'day', resource: 'tokens', window: 'day', limit: 'tokensPerDay' },
  { name: 'moneyMonth', resource: 'money', window: 'month', limit: 'microsPerMonth' },
  { name: 'moneyDay', resource: 'money', window: 'day', limit: 'microsPerDay' },
  { name: 'balance', resource: 'money', window: 'ever', limit: 'creditMicros' },
  { name: 'concurrency', resource: 'slots', window: 'ever', limit: 'concurrentRequests' },
  { name: 'spentMonth', resource: 'spent', window: 'month', limit: null },
  { name: 'spentDay', resource: 'spent', window: 'day', limit: null },
  { name: 'spentEver', resource: 'spent', window: 'ever', limit: null },
] as const satisfies readonly {
  readonly name: string;
  readonly resource: keyof Cost;
  readonly window: Window;
  /** Null = it is only counted. */
  readonly limit: keyof TenantLimits | null;
}[];

export type Budget = (typeof BUDGETS)[number];

/** The budgets of each resource: charges walk only those of what they charge. */
export const budgetsOf: readonly (readonly [keyof Cost, readonly Budget[]])[] = [
  ...Map.groupBy<keyof Cost, Budget>(BUDGETS, ({ resource }) => resource),
];

/** Returns both amounts of a spend, computed one by one. */
export const eachOf = (amount: (name: keyof Spend) => number): Spend => ({
  tokens: amount('tokens'),
  money: amount('money'),
});

export const NOTHING: Spend = { tokens: 0, money: 0 };

/** A budget that can have a limit. */
export type LimitableBudget = Extract<Budget, { readonly resource: Resource }>;

export const budgetOf = (name: LimitableBudget['name']): LimitableBudget =>
  BUDGETS.find((budget): budget is LimitableBudget => budget.name === name)!;
