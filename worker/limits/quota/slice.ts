import { amend, periodOf, spend } from './budget.ts';
import { periodUse, type QuotaLease, type QuotaState, type Subject, subjectState } from './state.ts';
import { add, correct, used } from './window.ts';

/**
 * Slices of a budget that regions hold: requests, tokens and slots, admitted far away without asking. Home counts a
 * slice as used from its grant until it knows what became of it, so that all regions together stay within the limits.
 * Pure: the clock is an argument (Unix milliseconds, never decreasing), the state plain data.
 */

/** A region may spend a slice for so long. */
export const SLICE_MS = 10_000;
/** Home waits so long for a region that does not report, then takes its slice for spent. */
export const SLICE_GRACE_MS = 30_000;
/** Of what is left, a slice takes at most this part; where that is less than one request, everything stays at home. */
const PARTS = 8;

const DAY_MS = 86_400_000;

/** null = no limit. */
export interface Amounts {
  requests: number | null;
  tokens: number | null;
  slots: number | null;
}

export interface Slice {
  readonly number: number;
  /** Who holds it. */
  readonly region: string;
  /** The tenant and the key whose requests it admits; both are charged. */
  readonly subjects: readonly string[];
  /** Granted, and not known to be spent. */
  readonly left: Amounts;
  /** Cell of the windows, and periods, that were charged with what is left. */
  second: number;
  readonly day: number;
  readonly month: number;
  /** After so many milliseconds the region spends nothing of it any more. */
  readonly lifeMs: number;
  readonly endsAt: number;
  /** The region has not been heard in time: what is left counts as spent until it is. */
  ended: boolean;
}

type Charge = { readonly [name in keyof Amounts]: number };

const charged = ({ requests, tokens, slots }: Amounts): Charge => ({
  requests: requests ?? 0,
  tokens: tokens ?? 0,
  slots: slots ?? 0,
});

/** The least that the limits leave, each with what counts against it; null when none is set. */
function least(rooms: readonly (readonly [limit: number | null, taken: number])[]): number | null {
  const set = rooms.flatMap(([limit, taken]) => (limit === null ? [] : [limit - taken]));
  return set.length === 0 ? null : Math.max(0, Math.min(...set));
}

/** What all subjects have left. */
function room(state: QuotaState, subjects: readonly Subject[], now: number): Amounts {
  const held = subjects.map(({ id, limits }) => ({ limits, of: subjectState(state, id) }));
  return {
    requests: least(held.map(({ limits, of }) => [limits.requestsPerMinute, used(of.requests, now)])),
    tokens: least(
      held.flatMap(({ limits, of }) => [
        [limits.tokensPerMinute, used(of.tokens, now)],
        [limits.tokensPerDay, periodUse(of, 'day', now)],
        [limits.tokensPerMonth, periodUse(of, 'month', now)],
      ]),
    ),
    slots: least(held.map(({ limits, of }) => [limits.concurrentRequests, of.running])),
  };
}

const part = (amount: number | null): number | null => (amount === null ? null : Math.floor(amount / PARTS));

/** Charges a slice to all subjects; null when too little is left to be worth one. */
export function grant(
  state: QuotaState,
  { number, region, subjects }: { number: number; region: string; subjects: readonly Subject[] },
  now: number,
): Slice | null {
  const { requests, tokens, slots } = room(state, subjects, now);
  const left: Amounts = { requests: part(requests), tokens: part(tokens), slots: part(slots) };
  if (Object.values(left).some((amount) => amount === 0)) return null;
  // Budgets of a day belong to that day: no slice outlives it.
  const lifeMs = Math.min(SLICE_MS, DAY_MS - (now % DAY_MS));
  const slice: Slice = {
    ...{ number, region, left, lifeMs, ended: false },
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

/** Changes what a slice holds, and with it what its subjects are charged. */
function change(state: QuotaState, slice: Slice, { requests, tokens, slots }: Charge): void {
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
 * A request that the region has admitted turns from a part of the slice into a lease of its own. It counts from now on,
 * a little longer than from its true admission; one of an ended slice counts from the slice's end.
 */
export function draw(
  state: QuotaState,
  slice: Slice,
  { id, tokens, leaseMs }: { readonly id: string; readonly tokens: number; readonly leaseMs: number },
  now: number,
): QuotaLease {
  const held = charged(slice.left);
  const second = slice.ended ? slice.second : Math.floor(now / 1000);
  change(state, slice, {
    requests: -Math.min(1, held.requests),
    tokens: -Math.min(tokens, held.tokens),
    slots: -Math.min(1, held.slots),
  });
  for (const name of slice.subjects) {
    const subject = subjectState(state, name);
    if (slice.ended) {
      correct(subject.requests, second, 1);
      correct(subject.tokens, second, tokens);
    } else {
      add(subject.requests, 1, now);
      add(subject.tokens, tokens, now);
    }
    spend(subject.day, slice.day, tokens);
    spend(subject.month, slice.month, tokens);
    subject.running += 1;
  }
  const { subjects, day, month } = slice;
  const lease = { id, subjects, tokens, second, day, month, expiresAt: now + leaseMs };
  state.leases.set(id, lease);
  return lease;
}

/** A request has ended that was drawn from the slice: the region goes on with its slot and the tokens it left over. */
export function refund(state: QuotaState, slice: Slice, tokens: number): void {
  change(state, slice, {
    requests: 0,
    tokens: slice.left.tokens === null ? 0 : tokens,
    slots: slice.left.slots === null || slice.ended ? 0 : 1,
  });
}

/** The region has told everything and spends no more of it: the rest comes back. */
export function release(state: QuotaState, slice: Slice): void {
  const { requests, tokens, slots } = charged(slice.left);
  change(state, slice, { requests: -requests, tokens: -tokens, slots: -slots });
}

/**
 * The region is silent: what is left counts as spent, and not before this moment, so that no window forgets it too early.
 * Slots come back, as they do from every request that gives no sign of life.
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
