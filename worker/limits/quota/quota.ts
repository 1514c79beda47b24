import { amend, periodOf, spend } from './budget.ts';
import { refusalOf } from './limit-check.ts';
import { type Claim, type QuotaLease, type QuotaState, type Refusal, subjectState } from './state.ts';
import { add, correct } from './window.ts';

/**
 * Limits of a tenant and of its keys: all-or-nothing reservation before a request, settlement with the truth after it,
 * leases that expire. Pure: the clock is an argument (Unix milliseconds, never decreasing), the state plain data.
 */

/** Takes everything a claim needs, or nothing: a refusal leaves the state as it was. */
export function reserve(state: QuotaState, claim: Claim, now: number): Refusal | null {
  const refusal = refusalOf(state, claim, now);
  if (refusal) return refusal;
  const day = periodOf('day', now);
  const month = periodOf('month', now);
  let second = 0;
  for (const { id } of claim.subjects) {
    const subject = subjectState(state, id);
    add(subject.requests, 1, now);
    second = add(subject.tokens, claim.tokens, now);
    spend(subject.day, day, claim.tokens);
    spend(subject.month, month, claim.tokens);
    subject.running += 1;
    state.subjects.set(id, subject);
  }
  const subjects = claim.subjects.map(({ id }) => id);
  const expiresAt = now + claim.leaseMs;
  state.leases.set(claim.id, { id: claim.id, subjects, tokens: claim.tokens, second, day, month, expiresAt });
  return null;
}

/**
 * Ends a lease: its reservation is replaced by what was really used, at the time of the reservation.
 * Returns the lease, or null when it is unknown or already settled, in which case nothing changes.
 */
export function settle(state: QuotaState, id: string, tokens: number): QuotaLease | null {
  const lease = state.leases.get(id);
  if (!lease) return null;
  state.leases.delete(id);
  for (const name of lease.subjects) subjectState(state, name).running -= 1;
  recharge(state, lease, tokens);
  return lease;
}

/** Charges a lease that holds nothing any more with `tokens` instead of what it was charged with. */
export function recharge(state: QuotaState, lease: QuotaLease, tokens: number): void {
  const difference = tokens - lease.tokens;
  for (const name of lease.subjects) {
    const subject = subjectState(state, name);
    correct(subject.tokens, lease.second, difference);
    amend(subject.day, lease.day, difference);
    amend(subject.month, lease.month, difference);
  }
}

/** Prolongs a lease; false when it no longer exists. */
export function renew(state: QuotaState, id: string, expiresAt: number): boolean {
  const lease = state.leases.get(id);
  if (lease) lease.expiresAt = expiresAt;
  return lease !== undefined;
}

/** Ids of the leases whose time is over. */
export const dueLeases = (state: QuotaState, now: number): string[] =>
  [...state.leases.values()].filter((lease) => lease.expiresAt <= now).map((lease) => lease.id);

/** When the next lease ends by itself; null without leases. */
export function nextExpiry(state: QuotaState): number | null {
  let next: number | null = null;
  for (const { expiresAt } of state.leases.values()) next = Math.min(next ?? expiresAt, expiresAt);
  return next;
}
