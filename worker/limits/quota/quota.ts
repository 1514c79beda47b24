import { eachOf } from './budget.ts';
import { exceededLimit } from './limit-check.ts';
import type { ExceededLimit, Spend } from './protocol.ts';
import {
  type Charge,
  type Claim,
  charge,
  type QuotaReservation,
  type QuotaState,
  reservedBy,
  room,
} from './state.ts';
import { isBeforeMinute, type Moment, momentOf } from './window.ts';

/**
 * Limits of a tenant and of its keys: all-or-nothing reservation before a request, growth while it runs,
 * settlement with the true usage after it, and reservations that expire. Pure: the clock is an argument (Unix
 * milliseconds, never decreasing), and the state is plain data.
 */

/** What every request takes in addition to tokens and money. */
const ONE_REQUEST = { requests: 1, slots: 1 };

/** Reserves everything that a claim needs. Returns an exceeded limit, with the state unchanged. */
export function reserve(state: QuotaState, claim: Claim, now: number): ExceededLimit | null {
  const { id, tokens, money, subjects: holders, ttlMs } = claim;
  const exceeded = probe(state, claim, now);
  if (exceeded) return exceeded;
  const left = room(state, holders, now);
  const limited = left.tokens !== null || left.money !== null;
  const subjects = holders.map((holder) => holder.id);
  const at = momentOf(now);
  charge(state, subjects, { ...ONE_REQUEST, tokens, money }, at);
  const charges = [{ tokens, money, ...at }];
  state.reservations.set(id, { id, subjects, charges, limited, expiresAt: now + ttlMs });
  return null;
}

/** Returns the limit that a claim exceeds; null if there is room for it. */
export const probe = (state: QuotaState, claim: Claim, now: number): ExceededLimit | null =>
  exceededLimit(state, claim, { ...ONE_REQUEST, tokens: claim.tokens, money: claim.money }, now);

/**
 * Raises a reservation to the totals of the claim; what is added counts from now on. If a limit is exceeded,
 * returns it and leaves the state unchanged. Changes nothing if that much is reserved already.
 * @param grows takes what is left, at least one token or micro-unit; otherwise all or nothing
 */
export function raise(state: QuotaState, claim: Claim, grows: boolean, now: number): ExceededLimit | null {
  const reservation = state.reservations.get(claim.id);
  if (!reservation) return null;
  const reserved = reservedBy(reservation);
  const left = room(state, claim.subjects, now);
  const spend = eachOf((name) => {
    const missing = Math.max(0, claim[name] - reserved[name]);
    return grows ? Math.min(missing, Math.max(1, left[name] ?? missing)) : missing;
  });
  if (spend.tokens === 0 && spend.money === 0) return null;
  const cost = spend.tokens === 0 ? { money: spend.money } : spend;
  const exceeded = exceededLimit(state, claim, cost, now, grows ? spend.tokens : claim.tokens);
  if (exceeded) return exceeded;
  const added = { ...spend, ...momentOf(now) };
  charge(state, reservation.subjects, spend, added);
  extend(state, reservation, added);
  return null;
}

/** Adds a charge to a reservation. Returns the new reservation. */
export function extend(state: QuotaState, reservation: QuotaReservation, added: Charge): QuotaReservation {
  const extended = { ...reservation, charges: [...shortened(reservation.charges, added), added] };
  if (state.reservations.has(extended.id)) state.reservations.set(extended.id, extended);
  return extended;
}

/** Joins the oldest two charges of one day if no minute counts them any more; a long stream has few. */
function shortened(charges: readonly Charge[], at: Moment): readonly Charge[] {
  const place = charges.findIndex(({ day }, index) => day === charges[index + 1]?.day);
  const [charged, next] = charges.slice(place, place + 2);
  if (place === -1 || !charged || !next || !isBeforeMinute(next, at)) return charges;
  return charges.toSpliced(place, 2, { ...charged, ...eachOf((name) => charged[name] + next[name]) });
}

/** Frees the slot of a reservation and ends it; its tokens stay charged. Null if it had ended. */
export function release(state: QuotaState, id: string): QuotaReservation | null {
  const reservation = state.reservations.get(id);
  if (!reservation) return null;
  state.reservations.delete(id);
  charge(state, reservation.subjects, { slots: -1 }, reservation.charges[0]!);
  return reservation;
}

/**
 * Ends a reservation: replaces what was reserved by what was spent, at the times of its charges.
 * Returns the reservation; null if it is unknown or already settled, in which case nothing changes.
 */
export function settle(state: QuotaState, id: string, spent: Spend): QuotaReservation | null {
  const reservation = release(state, id);
  if (reservation) recharge(state, reservation, spent);
  return reservation;
}

/** Corrects what an ended reservation was charged to `spent`. Refunds the latest charges first. */
export function recharge(state: QuotaState, reservation: QuotaReservation, spent: Spend): void {
  const reserved = reservedBy(reservation);
  let difference = eachOf((name) => spent[name] - reserved[name]);
  for (const charged of reservation.charges.toReversed()) {
    const rest = difference;
    const part = eachOf((name) => Math.max(rest[name], -charged[name]));
    difference = eachOf((name) => rest[name] - part[name]);
    charge(state, reservation.subjects, part, charged);
  }
}

/** Counts the final cost of a request, at the times at which `settle` and `recharge` leave it charged. */
export function spend(state: QuotaState, { subjects, charges }: QuotaReservation, cost: number): void {
  let rest = cost;
  for (const charged of charges) {
    const spent = charged === charges.at(-1) ? rest : Math.min(rest, charged.money);
    rest -= spent;
    charge(state, subjects, { spent }, charged);
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
