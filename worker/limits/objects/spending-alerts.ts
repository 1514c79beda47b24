import type { BudgetUse } from '../quota/protocol.ts';
import type { Subject } from '../quota/state.ts';
import type { SpendingAlert } from '../tenant-rpc.ts';

/** Limits of money, and what ended requests have cost: reservations come and go. */
const MONEY_LIMITS = [
  { name: 'micros_per_day', limit: 'microsPerDay', used: 'spentDay', period: 10 },
  { name: 'soft_micros_per_day', limit: 'softMicrosPerDay', used: 'spentDay', period: 10 },
  { name: 'micros_per_month', limit: 'microsPerMonth', used: 'spentMonth', period: 7 },
  { name: 'soft_micros_per_month', limit: 'softMicrosPerMonth', used: 'spentMonth', period: 7 },
] as const;

/** What a tenant had after the last entry of its prepaid balance. */
export interface Balance {
  /** Time of the entry in Unix milliseconds. */
  readonly at: number;
  /** Sum of all entries. */
  readonly credit: number;
  /** Cost of the requests that had ended by then. */
  readonly spent: number;
}

/**
 * Returns the alerts of all shares that a subject has reached. Each id occurs once per limit, its amount,
 * period and share.
 * @param shares in per cent
 * @param balance of the tenant; null = none, or the subject is a key
 */
export function reachedShares(
  { id, limits }: Subject,
  use: BudgetUse,
  options: { readonly shares: readonly number[]; readonly balance: Balance | null; readonly now: number },
): SpendingAlert[] {
  const { shares, balance, now } = options;
  const date = new Date(now).toISOString();
  const all = MONEY_LIMITS.map(({ name, limit, used, period }) => {
    const [amount, unit] = [limits[limit] ?? 0, date.slice(0, period)];
    return { name, limit: amount, used: use[used], period: unit, key: `${unit}:${amount}` };
  });
  const ofBalance = balance && {
    name: 'balance',
    limit: balance.credit - balance.spent,
    used: use.spentEver - balance.spent,
    period: String(balance.credit),
    key: String(balance.at),
  };
  return [...all, ...(ofBalance ? [ofBalance] : [])].flatMap(({ name, limit, used, period, key }) =>
    limit <= 0
      ? []
      : shares
          .filter((share) => used * 100 >= limit * share)
          .map((share) => ({
            id: `${id}:${name}:${key}:${share}`,
            subject: id,
            limit: name,
            period,
            share,
            limitMicros: limit,
            spentMicros: used,
            at: now,
          })),
  );
}
