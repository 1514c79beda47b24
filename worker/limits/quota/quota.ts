import { eachOf, type Spend } from './budget.ts';
import { exceededLimit } from './limit-check.ts';
import type { ExceededLimit } from './protocol.ts';
import {
  type Charge,
  type Claim,
  type Counters,
  charge,
  type QuotaReservation,
  reservedBy,
  room,
} from './state.ts';
import { isBeforeMinute, type Moment, momentOf } from './window.ts';

/**
 * Limits of a tenant and of its keys: all-or-nothing reservation before a request, growth while it runs, and
 * settlement with the true usage after it. Pure: the clock is an argument (Unix milliseconds, never
 * decreasing), and counters and reservations are plain data.
 */

/** What every request takes in addition to tokens and money. */
const ONE_REQUEST = { requests: 1, slots: 1 };

/** Reserves everything that a claim needs. Returns an exceeded limit, with the counters unchanged. */
export function reserve(counters: Counters, claim: Claim, now: number): QuotaReservation | ExceededLimit {
  const { id, tokens, money, subjects: holders, ttlMs } = claim;
  const exceeded = probe(counters, claim, now);
  if (exceeded) return exceeded;
  const left = room(counters, holders, now);
  const limited = left.tokens !== null || left.money !== null;
  const subjects = holders.map((holder) => holder.id);
  const at = momentOf(now);
  charge(counters, subjects, { ...ONE_REQUEST, tokens, money }, at);
  return { id, subjects, charges: [{ tokens, money, ...at }], limited, expiresAt: now + ttlMs };
}

/** Returns the limit that a claim exceeds; null if there is room for it. */
export const probe = (counters: Counters, claim: Claim, now: number): ExceededLimit | null =>
  exceededLimit(counters, claim, { ...ONE_REQUEST, tokens: claim.tokens, money: claim.money }, now);

/**
 * Raises a reservation to the totals of the claim; what is added counts from now on. Returns the new
 * reservation, or the limit that is exceeded, with the counters unchanged. Changes nothing if that much is
 * reserved already.
 * @param grows takes what is left, at least one token or micro-unit; otherwise all or nothing
 */
export function raise(
  counters: Counters,
  reservation: QuotaReservation,
  { claim, grows }: { readonly claim: Claim; readonly grows: boolean },
  now: number,
): QuotaReservation | ExceededLimit {
  const reserved = reservedBy(reservation);
  const left = room(counters, claim.subjects, now);
  const spend = eachOf((name) => {
    const missing = Math.max(0, claim[name] - reserved[name]);
    return grows ? Math.min(missing, Math.max(1, left[name] ?? missing)) : missing;
  });
  if (spend.tokens === 0 && spend.money === 0) return reservation;
  const cost = spend.tokens === 0 ? { money: spend.money } : spend;
  const exceeded = exceededLimit(counters, claim, cost, now, grows ? spend.tokens : claim.tokens);
  if (exceeded) return exceeded;
  const added = { ...spend, ...momentOf(now) };
  charge(counters, reservation.subjects, spend, added);
  return extended(reservation, added);
}

/** Returns a reservation with one more charge. */
export const extended = (reservation: QuotaReservation, added: Charge): QuotaReservation => ({
  ...reservation,
  charges: [...shortened(reservation.charges, added), added],
});

/** Joins the oldest two charges of one day if no minute counts them any more; a long stream has few. */
function shortened(charges: readonly Charge[], at: Moment): readonly Charge[] {
  const place = charges.findIndex(({ day }, index) => day === charges[index + 1]?.day);
  const [charged, next] = charges.slice(place, place + 2);
  if (place === -1 || !charged || !next || !isBeforeMinute(next, at)) return charges;
  return charges.toSpliced(place, 2, { ...charged, ...eachOf((name) => charged[name] + next[name]) });
}

/** Frees the slot of a reservation. Its tokens and its money stay charged until it is settled. */
export const release = (counters: Counters, { subjects, charges }: QuotaReservation): void =>
  charge(counters, subjects, { slots: -1 }, charges[0]!);

/**
 * Ends a reservation: replaces what was reserved by what was spent, and counts the cost, at the times of its
 * charges. Refunds the latest charges first.
 * @param slots that it gives back; 0 if it was released
 */
export function settle(
  counters: Counters,
  { subjects, charges }: QuotaReservation,
  spent: Spend,
  slots: 0 | 1,
): void {
  const reserved = reservedBy({ charges });
  let rest = eachOf((name) => spent[name] - reserved[name]);
  for (const charged of charges.toReversed()) {
    const part = eachOf((name) => Math.max(rest[name], -charged[name]));
    rest = eachOf((name) => rest[name] - part[name]);
    const freed = charged === charges[0] ? -slots : 0;
    charge(counters, subjects, { ...part, spent: charged.money + part.money, slots: freed }, charged);
  }
}
