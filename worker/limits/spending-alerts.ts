import type { BudgetUse, SpendingAlert } from '../env/limiter-protocol.ts';
import type { Subject } from './quota/state.ts';

/** The limits of money, with what counts against them. Only what ended requests have cost: reservations come and go. */
const MONEY_LIMITS = [
  { name: 'micros_per_day', limit: 'microsPerDay', used: 'spentDay', period: 10 },
  { name: 'soft_micros_per_day', limit: 'softMicrosPerDay', used: 'spentDay', period: 10 },
  { name: 'micros_per_month', limit: 'microsPerMonth', used: 'spentMonth', period: 7 },
  { name: 'soft_micros_per_month', limit: 'softMicrosPerMonth', used: 'spentMonth', period: 7 },
] as const;

/**
 * Returns the alerts of all shares that a subject has reached. Each id occurs once per limit, its amount, period and share.
 * @param shares in per cent
 * @param paid what was spent when the last amount was paid into a prepaid balance
 */
export function reachedShares(
  { id, limits }: Subject,
  use: BudgetUse,
  { shares, paid, now }: { readonly shares: readonly number[]; readonly paid: number; readonly now: number },
): SpendingAlert[] {
  const date = new Date(now).toISOString();
  const credit = limits.creditMicros ?? null;
  const all = [
    ...MONEY_LIMITS.map(({ name, limit, used, period }) => ({
      ...{ name, limit: limits[limit], used: use[used], period: date.slice(0, period) },
    })),
    {
      ...{ name: 'balance', used: use.spentEver - paid, limit: credit === null ? null : credit - paid },
      period: String(credit),
    },
  ];
  return all.flatMap(({ name, limit, used, period }) =>
    limit === null || limit <= 0
      ? []
      : shares
          .filter((share) => used * 100 >= limit * share)
          .map((share) => ({
            ...{ id: `${id}:${name}:${period}:${limit}:${share}`, subject: id, limit: name },
            ...{ period, share, limitMicros: limit, spentMicros: used, at: now },
          })),
  );
}
