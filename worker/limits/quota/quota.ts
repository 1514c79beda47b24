import type { ExceededLimit } from '../../env/limiter-protocol.ts';
import { amend, periodOf, spend } from './budget.ts';
import { exceededLimit, exceededTokens } from './limit-check.ts';
import { room } from './slice.ts';
import {
  type Charge,
  type Claim,
  type QuotaReservation,
  type QuotaState,
  reservedTokens,
  subjectState,
} from './state.ts';
import { add, correct } from './window.ts';

/**
 * Limits of a tenant and of its keys: all-or-nothing reservation before a request, growth while it runs, settlement with
 * the true usage after it, and reservations that expire. Pure: the clock is an argument (Unix milliseconds, never
 * decreasing), and the state is plain data.
 */

/** Reserves everything that a claim needs. If a limit is exceeded, returns it and leaves the state unchanged. */
export function reserve(state: QuotaState, claim: Claim, now: number): ExceededLimit | null {
  const exceeded = exceededLimit(state, claim, now);
  if (exceeded) return exceeded;
  const { id, tokens, subjects: holders, ttlMs } = claim;
  const limited = room(state, holders, now).tokens !== null;
  const subjects = holders.map((holder) => holder.id);
  for (const name of subjects) {
    const subject = subjectState(state, name);
    add(subject.requests, 1, now);
    subject.running += 1;
    state.subjects.set(name, subject);
  }
  const charges = [chargeTokens(state, subjects, tokens, now)];
  state.reservations.set(id, { id, subjects, charges, limited, expiresAt: now + ttlMs });
  return null;
}

/**
 * Raises a reservation to the tokens of the claim; what is added counts from now on. If a limit is exceeded, returns it and
 * leaves the state unchanged. Changes nothing if that many tokens are reserved already.
 * @param grows takes what is left, at least one token; otherwise all or nothing
 */
export function raise(state: QuotaState, claim: Claim, grows: boolean, now: number): ExceededLimit | null {
  const reservation = state.reservations.get(claim.id);
  const missing = reservation ? claim.tokens - reservedTokens(reservation) : 0;
  if (!reservation || missing <= 0) return null;
  const left = room(state, claim.subjects, now).tokens ?? missing;
  const tokens = grows ? Math.min(missing, Math.max(1, left)) : missing;
  const exceeded = exceededTokens(state, { ...claim, tokens }, grows ? tokens : claim.tokens, now);
  if (exceeded) return exceeded;
  extend(state, reservation, chargeTokens(state, reservation.subjects, tokens, now));
  return null;
}

/** Adds a charge to a reservation. Returns the new reservation. */
export function extend(state: QuotaState, reservation: QuotaReservation, charge: Charge): QuotaReservation {
  const extended = { ...reservation, charges: [...reservation.charges, charge] };
  if (state.reservations.has(extended.id)) state.reservations.set(extended.id, extended);
  return extended;
}

function chargeTokens(state: QuotaState, subjects: readonly string[], tokens: number, now: number): Charge {
  const day = periodOf('day', now);
  const month = periodOf('month', now);
  let second = 0;
  for (const name of subjects) {
    const subject = subjectState(state, name);
    second = add(subject.tokens, tokens, now);
    spend(subject.day, day, tokens);
    spend(subject.month, month, tokens);
  }
  return { tokens, second, day, month };
}

/** Frees the slot of a reservation and ends it; its tokens stay charged. Returns null if it has ended already. */
export function release(state: QuotaState, id: string): QuotaReservation | null {
  const reservation = state.reservations.get(id);
  if (!reservation) return null;
  state.reservations.delete(id);
  for (const name of reservation.subjects) subjectState(state, name).running -= 1;
  return reservation;
}

/**
 * Ends a reservation: replaces the reserved tokens by the used tokens, at the times of its charges.
 * Returns the reservation; null if it is unknown or already settled, in which case nothing changes.
 */
export function settle(state: QuotaState, id: string, tokens: number): QuotaReservation | null {
  const reservation = release(state, id);
  if (reservation) recharge(state, reservation, tokens);
  return reservation;
}

/** Corrects what an ended reservation was charged: `tokens` instead of the tokens so far. Refunds the latest charges first. */
export function recharge(state: QuotaState, reservation: QuotaReservation, tokens: number): void {
  let difference = tokens - reservedTokens(reservation);
  for (const charge of reservation.charges.toReversed()) {
    const part = Math.max(difference, -charge.tokens);
    difference -= part;
    for (const name of reservation.subjects) {
      const subject = subjectState(state, name);
      correct(subject.tokens, charge.second, part);
      amend(subject.day, charge.day, part);
      amend(subject.month, charge.month, part);
    }
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
