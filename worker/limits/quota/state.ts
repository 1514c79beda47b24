import type { Limits, TenantLimits } from '@continuo/shared/tenant.ts';
import {
  type Amounts,
  BUDGETS,
  type Budget,
  budgetsOf,
  type Cost,
  eachOf,
  type LimitableBudget,
  type Spend,
} from './budget.ts';
import type { BudgetUse } from './protocol.ts';
import { add, type Meter, type Moment, momentOf, used } from './window.ts';

/** A tenant, one of its keys or one of its end users, with its limits. */
export interface Subject {
  readonly id: string;
  readonly limits: Limits & Partial<TenantLimits>;
}

/** What a subject has used of each budget. */
export type SubjectState = Readonly<Record<Budget['name'], Meter>>;

/** What was charged together, and when. */
export interface Charge extends Moment, Spend {}

/** The amounts that a running request has reserved. */
export interface QuotaReservation {
  readonly id: string;
  readonly subjects: readonly string[];
  /** Oldest first. A reservation grows by one charge at a time, and its request uses them in this order. */
  readonly charges: readonly Charge[];
  /** Tokens or money are limited, so the request is billed for no more than it has reserved. */
  readonly limited: boolean;
  readonly expiresAt: number;
}

/** A request, or a slice: what it is charged, and may give back. */
export interface Holder extends Pick<QuotaReservation, 'subjects' | 'charges'> {
  /** A request that has a slot. */
  readonly isRunning: boolean;
}

/** Returns what a reservation is charged. */
export const reservedBy = ({ charges }: { readonly charges: readonly Spend[] }): Spend =>
  eachOf((name) => charges.reduce((sum, charge) => sum + charge[name], 0));

/** What all subjects have used. */
export interface Counters {
  get(id: string): SubjectState | undefined;
  /** Also called when a state has changed in place. */
  set(id: string, state: SubjectState): unknown;
}

export interface Claim extends Spend {
  readonly id: string;
  /** All of them must have room. */
  readonly subjects: readonly Subject[];
  /** The reservation expires after this many milliseconds unless it is renewed. */
  readonly ttlMs: number;
  /** The others that may give something back: what only they prevent is temporary. Absent = none. */
  readonly holders?: () => readonly Holder[];
}

export const emptySubject = (): SubjectState =>
  Object.fromEntries(BUDGETS.map(({ name }) => [name, []])) as unknown as SubjectState;

/** Returns the state of a subject; an unknown subject has used nothing. */
export const subjectState = (counters: Counters, id: string): SubjectState =>
  counters.get(id) ?? emptySubject();

const usedOf = (state: SubjectState, { name, window }: Budget, at: Moment): number =>
  used(state[name], window, at);

/** Returns what a subject has used of each budget. */
export function useOf(counters: Counters, id: string, now: number): BudgetUse {
  const [held, at] = [subjectState(counters, id), momentOf(now)];
  const entries = BUDGETS.map((budget) => [budget.name, usedOf(held, budget, at)]);
  return Object.fromEntries(entries) as unknown as BudgetUse;
}

/**
 * Returns whether a key or an end user has used nothing of a window that lasts at a moment or later, and runs
 * no request.
 */
export const isUnused = (state: SubjectState, at: Moment): boolean =>
  BUDGETS.every(
    (budget) => (budget.window === 'ever' && budget.resource !== 'slots') || usedOf(state, budget, at) === 0,
  );

/** Charges an amount to all budgets of the subjects, at the moment at which it counts. */
export function charge(counters: Counters, subjects: readonly string[], cost: Cost, at: Moment): void {
  for (const id of subjects) {
    const subject = subjectState(counters, id);
    for (const [resource, budgets] of budgetsOf) {
      const amount = cost[resource];
      if (amount) for (const { name, window } of budgets) add(subject[name], window, at, amount);
    }
    counters.set(id, subject);
  }
}

export interface LimitedBudget {
  readonly subject: Subject;
  readonly budget: LimitableBudget;
  readonly limit: number;
  readonly used: number;
}

/** Returns the limited budgets of the subjects. */
export function limitedBudgets(
  counters: Counters,
  subjects: readonly Subject[],
  now: number,
): readonly LimitedBudget[] {
  const at = momentOf(now);
  return subjects.flatMap((subject) => {
    const held = subjectState(counters, subject.id);
    return BUDGETS.flatMap((budget) => {
      if (budget.limit === null) return [];
      const limit = subject.limits[budget.limit] ?? null;
      return limit === null ? [] : [{ subject, budget, limit, used: usedOf(held, budget, at) }];
    });
  });
}

/**
 * Returns the amounts that every subject has left; null = no limit.
 * @param partsOf how many parts a subject's amounts are divided into, of which one is returned
 */
export function room(
  counters: Counters,
  subjects: readonly Subject[],
  now: number,
  partsOf: (subject: string) => number = () => 1,
): Amounts {
  const left: Amounts = { requests: null, tokens: null, money: null, slots: null };
  for (const { budget, limit, used: taken, subject } of limitedBudgets(counters, subjects, now)) {
    const part = Math.floor((limit - taken) / partsOf(subject.id));
    left[budget.resource] = Math.max(0, Math.min(left[budget.resource] ?? Infinity, part));
  }
  return left;
}

/** Returns amounts as a cost; what has no limit costs nothing. */
export const costOf = ({ requests, tokens, money, slots }: Amounts, sign: 1 | -1 = 1): Cost => ({
  requests: sign * (requests ?? 0),
  tokens: sign * (tokens ?? 0),
  money: sign * (money ?? 0),
  slots: sign * (slots ?? 0),
});
