import type { Cost } from './budget.ts';
import type { ExceededLimit } from './protocol.ts';
import {
  type Claim,
  type Counters,
  type Holder,
  type LimitedBudget,
  limitedBudgets,
  type Subject,
  subjectState,
} from './state.ts';
import { momentOf, waitFor } from './window.ts';

const MIN_SLOT_WAIT_MS = 1_000;
const MAX_SLOT_WAIT_MS = 30_000;

interface Others {
  /** What may give something back. */
  readonly holders: () => readonly Holder[];
  readonly now: number;
}

/**
 * Estimates when the next of a subject's running requests ends. On average, what is left of a running request
 * takes as long as its age. The first of n ends after 1/n of that.
 */
function slotWaitMs({ id }: Subject, { holders, now }: Others): number {
  const running = holders().filter(({ subjects, isRunning }) => isRunning && subjects.includes(id));
  const ages = running.reduce((sum, { charges }) => sum + Math.max(0, now - charges[0]!.second * 1000), 0);
  const estimate = ages / Math.max(1, running.length) ** 2;
  return Math.min(MAX_SLOT_WAIT_MS, Math.max(MIN_SLOT_WAIT_MS, Math.round(estimate)));
}

/** Returns what the holders could give back of a budget at most. */
function refundable({ budget, subject }: LimitedBudget, holders: readonly Holder[], now: number): number {
  const { resource, window } = budget;
  if (resource === 'slots' || resource === 'requests' || window === 'minute') return 0;
  const at = momentOf(now);
  return holders
    .filter(({ subjects }) => subjects.includes(subject.id))
    .flatMap(({ charges }) => charges)
    .filter((charge) => window === 'ever' || charge[window] === at[window])
    .reduce((sum, charge) => sum + charge[resource], 0);
}

/** Returns the milliseconds until an amount fits a full budget; null = waiting does not help. */
function waitMs(counters: Counters, limited: LimitedBudget, amount: number, others: Others): number | null {
  const { budget, subject, limit, used } = limited;
  if (budget.resource === 'slots') return slotWaitMs(subject, others);
  if (budget.window === 'minute')
    return waitFor(subjectState(counters, subject.id)[budget.name], limit, amount, others.now);
  const fits = used - refundable(limited, others.holders(), others.now) + amount <= limit;
  return fits ? slotWaitMs(subject, others) : null;
}

/**
 * Returns the limit that a cost exceeds: one that waiting does not help with first, then the one with the
 * longest wait.
 * @param whole tokens that must fit into one minute together
 */
export function exceededLimit(
  counters: Counters,
  { subjects, holders = () => [] }: Pick<Claim, 'subjects' | 'holders'>,
  cost: Cost,
  now: number,
  whole = cost.tokens ?? 0,
): ExceededLimit | null {
  let worst: ExceededLimit | null = null;
  for (const limited of limitedBudgets(counters, subjects, now)) {
    const { budget, subject, limit, used } = limited;
    const amount = cost[budget.resource];
    // What costs nothing needs no money.
    if (amount === undefined || (budget.resource === 'money' && amount === 0)) continue;
    const excess = { subject: subject.id, limit, used };
    if (budget.name === 'tokens' && whole > limit)
      return { ...excess, kind: 'too_large', requested: whole, retryAfterMs: null };
    if (used + amount <= limit) continue;
    const retryAfterMs = waitMs(counters, limited, amount, { holders, now });
    const exceeded = { ...excess, kind: budget.name, requested: amount, retryAfterMs };
    if (retryAfterMs === null) return exceeded;
    if (retryAfterMs > (worst?.retryAfterMs ?? 0)) worst = exceeded;
  }
  return worst;
}
