import type { Amounts } from '../../env/limiter-protocol.ts';
import { amend, periodOf, spend } from './budget.ts';
import {
  type Charge,
  periodUse,
  type QuotaReservation,
  type QuotaState,
  type Subject,
  subjectState,
} from './state.ts';
import { add, correct, used } from './window.ts';

/**
 * Slices of a tenant's budget: requests, tokens and slots that an isolate may use without asking home. Home counts a slice
 * as used from its grant until the isolate reports, so all isolates together stay within the limits.
 * Pure: the clock is an argument (Unix milliseconds, never decreasing), and the state is plain data.
 */

/** Lifetime of a slice. */
export const SLICE_MS = 10_000;
/** If the isolate stays silent for this long after the lifetime, home counts the slice as spent. */
export const SLICE_GRACE_MS = 30_000;
/** A slice takes at most 1/PARTS of the remaining budget. If that is less than one request, home grants no slice. */
const PARTS = 8;

const DAY_MS = 86_400_000;

export interface Slice {
  readonly number: number;
  readonly tenantId: string;
  readonly keyId: string;
  /** Of the reservations that it pays for. */
  readonly ttlMs: number;
  /** The tenant and the key that are charged. */
  readonly subjects: readonly string[];
  /** Granted and not reported as spent. */
  readonly left: Amounts;
  /** The cell of the windows and the periods that were charged. */
  second: number;
  readonly day: number;
  readonly month: number;
  /** After this many milliseconds, the isolate no longer uses it. */
  readonly lifeMs: number;
  endsAt: number;
  /** The isolate was silent for too long: what is left counts as spent until its requests are known. */
  ended: boolean;
}

type Cost = { readonly [name in keyof Amounts]: number };

const charged = ({ requests, tokens, slots }: Amounts): Cost => ({
  requests: requests ?? 0,
  tokens: tokens ?? 0,
  slots: slots ?? 0,
});

/** Returns the minimum of what the limits leave; null if no limit is set. */
function minLeft(rooms: readonly (readonly [limit: number | null, taken: number])[]): number | null {
  const set = rooms.flatMap(([limit, taken]) => (limit === null ? [] : [limit - taken]));
  return set.length === 0 ? null : Math.max(0, Math.min(...set));
}

/** Returns the amounts that every subject has left. */
export function room(state: QuotaState, subjects: readonly Subject[], now: number): Amounts {
  const held = subjects.map(({ id, limits }) => ({ limits, of: subjectState(state, id) }));
  return {
    requests: minLeft(held.map(({ limits, of }) => [limits.requestsPerMinute, used(of.requests, now)])),
    tokens: minLeft(
      held.flatMap(({ limits, of }) => [
        [limits.tokensPerMinute, used(of.tokens, now)],
        [limits.tokensPerDay, periodUse(of, 'day', now)],
        [limits.tokensPerMonth, periodUse(of, 'month', now)],
      ]),
    ),
    slots: minLeft(held.map(({ limits, of }) => [limits.concurrentRequests, of.running])),
  };
}

const part = (amount: number | null): number | null => (amount === null ? null : Math.floor(amount / PARTS));

interface SliceClaim {
  readonly subjects: readonly Subject[];
  readonly owner: Pick<Slice, 'number' | 'tenantId' | 'keyId' | 'ttlMs'>;
  /** A slice with fewer tokens would pay for no request. */
  readonly minTokens: number;
}

/** Charges a new slice to all subjects; null if too little is left. */
export function grant(
  state: QuotaState,
  { subjects, owner, minTokens }: SliceClaim,
  now: number,
): Slice | null {
  const { requests, tokens, slots } = room(state, subjects, now);
  const left: Amounts = { requests: part(requests), tokens: part(tokens), slots: part(slots) };
  if (left.requests === 0 || left.slots === 0) return null;
  if (left.tokens !== null && left.tokens < Math.max(1, minTokens)) return null;
  // A slice is charged to one day's budget, so it ends with that day.
  const lifeMs = Math.min(SLICE_MS, DAY_MS - (now % DAY_MS));
  const slice: Slice = {
    ...owner,
    left,
    lifeMs,
    ended: false,
    subjects: subjects.map(({ id }) => id),
    second: Math.floor(now / 1000),
    day: periodOf('day', now),
    month: periodOf('month', now),
    endsAt: now + lifeMs + SLICE_GRACE_MS,
  };
  const charge = charged(left);
  for (const id of slice.subjects) {
    const subject = subjectState(state, id);
    add(subject.requests, charge.requests, now);
    add(subject.tokens, charge.tokens, now);
    spend(subject.day, slice.day, charge.tokens);
    spend(subject.month, slice.month, charge.tokens);
    subject.running += charge.slots;
    state.subjects.set(id, subject);
  }
  return slice;
}

/** Changes what a slice holds and what its subjects are charged. */
function change(state: QuotaState, slice: Slice, { requests, tokens, slots }: Cost): void {
  const { left, second, day, month } = slice;
  if (left.requests !== null) left.requests += requests;
  if (left.tokens !== null) left.tokens += tokens;
  if (left.slots !== null) left.slots += slots;
  for (const id of slice.subjects) {
    const subject = subjectState(state, id);
    correct(subject.requests, second, requests);
    correct(subject.tokens, second, tokens);
    amend(subject.day, day, tokens);
    amend(subject.month, month, tokens);
    subject.running += slots;
  }
}

/**
 * Turns a part of the slice into the reservation of a request that the isolate has admitted. The request counts from now
 * on, which is a little longer than from its admission. A request of an ended slice counts from the slice's end.
 */
export function draw(
  state: QuotaState,
  slice: Slice,
  { id, tokens }: { readonly id: string; readonly tokens: number },
  now: number,
): QuotaReservation {
  const held = charged(slice.left);
  change(state, slice, {
    requests: -Math.min(1, held.requests),
    tokens: 0,
    slots: -Math.min(1, held.slots),
  });
  const charge = drawTokens(state, slice, tokens, now);
  for (const name of slice.subjects) {
    const subject = subjectState(state, name);
    if (slice.ended) correct(subject.requests, charge.second, 1);
    else add(subject.requests, 1, now);
    subject.running += 1;
  }
  const { subjects, left } = slice;
  const expiresAt = now + slice.ttlMs;
  const reservation = { id, subjects, charges: [charge], limited: left.tokens !== null, expiresAt };
  state.reservations.set(id, reservation);
  return reservation;
}

/** Turns tokens of the slice into a charge of a request. */
export function drawTokens(state: QuotaState, slice: Slice, tokens: number, now: number): Charge {
  const { subjects, ended, day, month } = slice;
  const second = ended ? slice.second : Math.floor(now / 1000);
  change(state, slice, { requests: 0, tokens: -Math.min(tokens, charged(slice.left).tokens), slots: 0 });
  for (const name of subjects) {
    const subject = subjectState(state, name);
    if (ended) correct(subject.tokens, second, tokens);
    else add(subject.tokens, tokens, now);
    spend(subject.day, day, tokens);
    spend(subject.month, month, tokens);
  }
  return { tokens, second, day, month };
}

/** Returns the slot and the unused tokens of a settled request to its slice. */
export function refund(state: QuotaState, slice: Slice, tokens: number): void {
  change(state, slice, {
    requests: 0,
    tokens: slice.left.tokens === null ? 0 : tokens,
    slots: slice.left.slots === null || slice.ended ? 0 : 1,
  });
}

/** Takes back the rest of a slice that the isolate no longer uses. */
export function release(state: QuotaState, slice: Slice): void {
  const { requests, tokens, slots } = charged(slice.left);
  change(state, slice, { requests: -requests, tokens: -tokens, slots: -slots });
}

/**
 * Ends the slice of a silent isolate. What is left counts as spent now, so that no window drops it too early. The slots
 * become free, as those of every expired reservation do.
 */
export function end(state: QuotaState, slice: Slice, now: number): void {
  const { requests, tokens, slots } = charged(slice.left);
  change(state, slice, { requests: 0, tokens: 0, slots: -slots });
  for (const id of slice.subjects) {
    const subject = subjectState(state, id);
    correct(subject.requests, slice.second, -requests);
    correct(subject.tokens, slice.second, -tokens);
    add(subject.requests, requests, now);
    add(subject.tokens, tokens, now);
  }
  slice.second = Math.floor(now / 1000);
  slice.ended = true;
}
