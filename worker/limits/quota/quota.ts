import type { ExceededLimit } from '../../env/limiter-protocol.ts';
import { amend, periodOf, spend } from './budget.ts';
import { exceededLimit, exceededTokens } from './limit-check.ts';
import { type Claim, type QuotaReservation, type QuotaState, subjectState } from './state.ts';
import { add, correct } from './window.ts';

/**
 * Limits of a tenant and of its keys: all-or-nothing reservation before a request, settlement with the true usage after
 * it, and reservations that expire. Pure: the clock is an argument (Unix milliseconds, never decreasing), and the state is
 * plain data.
 */

/** Reserves everything that a claim needs. If a limit is exceeded, returns it and leaves the state unchanged. */
export function reserve(state: QuotaState, claim: Claim, now: number): ExceededLimit | null {
  const exceeded = exceededLimit(state, claim, now);
  if (exceeded) return exceeded;
  for (const { id } of claim.subjects) {
    const subject = subjectState(state, id);
    add(subject.requests, 1, now);
    subject.running += 1;
    state.subjects.set(id, subject);
  }
  chargeTokens(state, claim, now, now + claim.ttlMs);
  return null;
}

/**
 * Raises a reservation to the tokens of the claim, all of which then count from now on. If a limit is exceeded, returns it
 * and leaves the state unchanged. Changes nothing if that many tokens are reserved already.
 */
export function raise(state: QuotaState, claim: Claim, now: number): ExceededLimit | null {
  const reservation = state.reservations.get(claim.id);
  if (!reservation || reservation.tokens >= claim.tokens) return null;
  recharge(state, reservation, 0);
  const exceeded = exceededTokens(state, claim, now);
  if (exceeded) recharge(state, { ...reservation, tokens: 0 }, reservation.tokens);
  else chargeTokens(state, claim, now, reservation.expiresAt);
  return exceeded;
}

/** Charges the tokens of a claim now, and keeps its reservation. */
function chargeTokens(state: QuotaState, { id, subjects, tokens }: Claim, now: number, expiresAt: number) {
  const day = periodOf('day', now);
  const month = periodOf('month', now);
  let second = 0;
  for (const { id: name } of subjects) {
    const subject = subjectState(state, name);
    second = add(subject.tokens, tokens, now);
    spend(subject.day, day, tokens);
    spend(subject.month, month, tokens);
  }
  const names = subjects.map(({ id: name }) => name);
  state.reservations.set(id, { id, subjects: names, tokens, second, day, month, expiresAt });
}

/**
 * Ends a reservation: replaces the reserved tokens by the used tokens, at the time of the reservation.
 * Returns the reservation; null if it is unknown or already settled, in which case nothing changes.
 */
export function settle(state: QuotaState, id: string, tokens: number): QuotaReservation | null {
  const reservation = state.reservations.get(id);
  if (!reservation) return null;
  state.reservations.delete(id);
  for (const name of reservation.subjects) subjectState(state, name).running -= 1;
  recharge(state, reservation, tokens);
  return reservation;
}

/** Corrects what an ended reservation was charged: `tokens` instead of the tokens so far. */
export function recharge(state: QuotaState, reservation: QuotaReservation, tokens: number): void {
  const difference = tokens - reservation.tokens;
  for (const name of reservation.subjects) {
    const subject = subjectState(state, name);
    correct(subject.tokens, reservation.second, difference);
    amend(subject.day, reservation.day, difference);
    amend(subject.month, reservation.month, difference);
  }
}

/** Renews a reservation; false if it no longer exists. */
export function renew(state: QuotaState, id: string, expiresAt: number): boolean {
  const reservation = state.reservations.get(id);
  if (reservation) reservation.expiresAt = expiresAt;
  return reservation !== undefined;
}

/** Returns the ids of the expired reservations. */
export const dueReservations = (state: QuotaState, now: number): string[] =>
  [...state.reservations.values()]
    .filter((reservation) => reservation.expiresAt <= now)
    .map((reservation) => reservation.id);

/** Unix milliseconds at which the next reservation expires; null without reservations. */
export function nextExpiry(state: QuotaState): number | null {
  let next: number | null = null;
  for (const { expiresAt } of state.reservations.values()) next = Math.min(next ?? expiresAt, expiresAt);
  return next;
}
