/** Token budgets of a UTC calendar day and month. */

const DAY_MS = 86_400_000;

/** Tokens used in one period. A later period starts at zero. */
export interface Budget {
  period: number;
  used: number;
}

export type Period = 'day' | 'month';

/** Returns the number of a period: days since 1970, or months since year 0. */
export function periodOf(kind: Period, now: number): number {
  if (kind === 'day') return Math.floor(now / DAY_MS);
  const date = new Date(now);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

export const emptyBudget = (): Budget => ({ period: 0, used: 0 });

/** Returns the tokens used in `period`. */
export function usedIn(budget: Budget, period: number): number {
  return budget.period === period ? budget.used : 0;
}

export function spend(budget: Budget, period: number, amount: number): void {
  if (period > budget.period) {
    budget.period = period;
    budget.used = 0;
  }
  if (period === budget.period) budget.used += amount;
}

/** Corrects an earlier amount. Has no effect once its period is over. */
export function amend(budget: Budget, period: number, difference: number): void {
  if (budget.period === period) budget.used += difference;
}
