import { DAY_MS } from '../usage/usage-sums.ts';
import { type Amounts, type Cost, eachOf, RESOURCES, type Spend } from './budget.ts';
import type { SliceRequest } from './protocol.ts';
import {
  type Charge,
  type Counters,
  charge,
  costOf,
  type Holder,
  type QuotaReservation,
  room,
  type Subject,
} from './state.ts';
import { type Moment, momentOf } from './window.ts';

/**
 * Slices of a tenant's budget: requests, tokens, money and slots that an isolate may use without asking the
 * object. The object counts a slice as used from its grant until the isolate reports, so all isolates
 * together stay within the limits. Pure: the clock is an argument (Unix milliseconds, never decreasing), and
 * the state is plain data.
 */

export const SLICE_MS = 10_000;
/** If the isolate has not called for this long after the lifetime, it is lost: the slice counts as spent. */
export const SLICE_GRACE_MS = 30_000;
/**
 * A slice takes at most 1/PARTS of the remaining budget, and less if there are more slices: the first ones
 * would leave nothing for the others. Below one request, the object grants none.
 */
const PARTS = 8;

/** Its moment is when it was charged. */
export interface Slice extends Moment {
  readonly number: number;
  readonly tenantId: string;
  readonly keyId: string;
  /** Of the reservations that it pays for. */
  readonly ttlMs: number;
  /** The tenant and the key that are charged. */
  readonly subjects: readonly string[];
  /** Granted and not reported as spent. */
  readonly left: Amounts;
  /** Moves if the slice ends. */
  second: number;
  /** After this many milliseconds, the isolate no longer uses it. */
  readonly lifeMs: number;
  endsAt: number;
  /** The isolate is lost: what is left counts as spent until its requests are known. */
  ended: boolean;
}

interface SliceClaim {
  readonly subjects: readonly Subject[];
  readonly owner: Pick<Slice, 'number' | 'tenantId' | 'keyId' | 'ttlMs'>;
  /** A slice with less would pay for no request. */
  readonly min: Spend;
  readonly most?: SliceRequest['most'] | undefined;
  /** Returns how many slices are charged to a subject. */
  readonly slices: (subject: string) => number;
}

/** Charges a new slice to all subjects; null if too little is left. */
export function grant(
  counters: Counters,
  { subjects, owner, min, most, slices }: SliceClaim,
  now: number,
): Slice | null {
  const left = room(counters, subjects, now, (subject) => Math.max(PARTS, slices(subject)));
  for (const name of RESOURCES) {
    const amount = left[name];
    if (amount !== null && most) left[name] = Math.min(amount, most[name]);
  }
  if (left.requests === 0 || left.slots === 0) return null;
  if ((left.tokens ?? Infinity) < Math.max(1, min.tokens) || (left.money ?? Infinity) < min.money)
    return null;
  // A slice is charged to one day's budget, so it ends with that day.
  const lifeMs = Math.min(SLICE_MS, DAY_MS - (now % DAY_MS));
  const slice: Slice = {
    ...owner,
    left,
    lifeMs,
    ended: false,
    subjects: subjects.map(({ id }) => id),
    ...momentOf(now),
    endsAt: now + lifeMs + SLICE_GRACE_MS,
  };
  charge(counters, slice.subjects, costOf(left), slice);
  return slice;
}

/** Returns a slice as what it may give back. */
export const holderOf = ({ subjects, left, second, day, month }: Slice): Holder => ({
  subjects,
  charges: [{ ...eachOf((name) => left[name] ?? 0), second, day, month }],
  isRunning: false,
});

/** Changes what a slice holds and what its subjects are charged. */
function change(counters: Counters, slice: Slice, cost: Cost): void {
  const { left } = slice;
  for (const name of RESOURCES) if (left[name] !== null) left[name] += cost[name] ?? 0;
  charge(counters, slice.subjects, cost, slice);
}

/**
 * Turns a part of the slice into the reservation of a request that the isolate has admitted. The request
 * counts from now on, which is a little longer than from its admission. A request of an ended slice counts
 * from the slice's end.
 */
export function draw(
  counters: Counters,
  slice: Slice,
  { id, spend }: { readonly id: string; readonly spend: Spend },
  now: number,
): QuotaReservation {
  const { subjects, left } = slice;
  const first = drawSpend(counters, slice, { requests: 1, slots: 1, ...spend }, now);
  const limited = typeof left.tokens === 'number' || typeof left.money === 'number';
  return { id, subjects, charges: [first], limited, expiresAt: now + slice.ttlMs };
}

/** Turns a part of the slice into a charge of a running request. */
export function drawSpend(counters: Counters, slice: Slice, cost: Spend & Cost, now: number): Charge {
  const { subjects, ended, day, month, left } = slice;
  const at = { second: ended ? slice.second : momentOf(now).second, day, month };
  const taken: Amounts = { requests: 0, tokens: 0, money: 0, slots: 0 };
  for (const name of RESOURCES) taken[name] = Math.min(cost[name] ?? 0, left[name] ?? 0);
  change(counters, slice, costOf(taken, -1));
  charge(counters, subjects, cost, at);
  return { tokens: cost.tokens, money: cost.money, ...at };
}

/** Returns the slot and the unused part of a settled request to its slice. */
export function refund(counters: Counters, slice: Slice, unused: Spend): void {
  const { left, ended } = slice;
  change(counters, slice, {
    ...eachOf((name) => (typeof left[name] === 'number' ? unused[name] : 0)),
    slots: left.slots === null || ended ? 0 : 1,
  });
}

/** Takes back the rest of a slice that the isolate no longer uses. */
export function release(counters: Counters, slice: Slice): void {
  change(counters, slice, costOf(slice.left, -1));
}

/**
 * Ends the slice of a lost isolate. What is left counts as spent now, so that no window drops it too early.
 * The slots become free, as those of every expired reservation do.
 */
export function end(counters: Counters, slice: Slice, now: number): void {
  change(counters, slice, { slots: -(slice.left.slots ?? 0) });
  charge(counters, slice.subjects, costOf(slice.left, -1), slice);
  slice.second = momentOf(now).second;
  charge(counters, slice.subjects, costOf(slice.left), slice);
  slice.ended = true;
}
