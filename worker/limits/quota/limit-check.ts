import type { ExceededLimit } from '../../env/limiter-protocol.ts';
import { type Claim, periodUse, type QuotaState, type Subject, subjectState } from './state.ts';
import { used, waitFor } from './window.ts';

const MIN_SLOT_WAIT_MS = 1_000;
const MAX_SLOT_WAIT_MS = 30_000;

/**
 * Estimates when the next of a subject's running requests ends. Requests that run at a random moment still need as long
 * as their age, on average. The first of n ends after about the n-th part of that.
 */
function slotWaitMs(state: QuotaState, { id }: Subject, now: number): number {
  const running = [...state.reservations.values()].filter(({ subjects }) => subjects.includes(id));
  const ages = running.reduce((sum, { charges }) => sum + Math.max(0, now - charges[0]!.second * 1000), 0);
  const estimate = ages / Math.max(1, running.length) ** 2;
  return Math.min(MAX_SLOT_WAIT_MS, Math.max(MIN_SLOT_WAIT_MS, Math.round(estimate)));
}

const exceeded = (
  subject: Subject,
  kind: ExceededLimit['kind'],
  limit: number,
  taken: number,
  requested: number,
  retryAfterMs: number | null,
): ExceededLimit => ({ kind, subject: subject.id, limit, used: taken, requested, retryAfterMs });

/** Returns a limit that waiting does not help with: the request is larger than its limit, or a budget is spent. */
function exceededForLong(
  state: QuotaState,
  claim: Claim,
  subject: Subject,
  whole: number,
  now: number,
): ExceededLimit | null {
  const { limits } = subject;
  const held = subjectState(state, subject.id);
  if (limits.tokensPerMinute !== null && whole > limits.tokensPerMinute) {
    const taken = used(held.tokens, now);
    return exceeded(subject, 'too_large', limits.tokensPerMinute, taken, whole, null);
  }
  for (const [kind, limit] of [
    ['month', limits.tokensPerMonth],
    ['day', limits.tokensPerDay],
  ] as const) {
    if (limit === null) continue;
    const taken = periodUse(held, kind, now);
    if (taken + claim.tokens > limit) return exceeded(subject, kind, limit, taken, claim.tokens, null);
  }
  return null;
}

type Check = (state: QuotaState, claim: Claim, subject: Subject, now: number) => ExceededLimit[];

/** Returns the limits per minute of a subject that have no room now but will have later. */
const exceededPerMinute: Check = (state, claim, { id, limits }, now) => {
  const held = subjectState(state, id);
  const found: ExceededLimit[] = [];
  for (const [kind, limit, amount] of [
    ['requests', limits.requestsPerMinute, 1],
    ['tokens', limits.tokensPerMinute, claim.tokens],
  ] as const) {
    if (limit === null) continue;
    const wait = waitFor(held[kind], limit, amount, now);
    if (wait > 0) found.push(exceeded({ id, limits }, kind, limit, used(held[kind], now), amount, wait));
  }
  return found;
};

/** Also returns the concurrency limit. */
const exceededForNow: Check = (state, claim, subject, now) => {
  const found = exceededPerMinute(state, claim, subject, now);
  const { running } = subjectState(state, subject.id);
  const slots = subject.limits.concurrentRequests;
  if (slots === null || running < slots) return found;
  return [...found, exceeded(subject, 'concurrency', slots, running, 1, slotWaitMs(state, subject, now))];
};

/** Returns the limit that a claim exceeds: one that waiting does not help with first, then the one with the longest wait. */
export const exceededLimit = (state: QuotaState, claim: Claim, now: number): ExceededLimit | null =>
  firstExceeded(state, claim, claim.tokens, now, exceededForNow);

/**
 * Like `exceededLimit`, for further tokens of a request that already has its slot.
 * @param whole tokens that must fit into one minute together
 */
export const exceededTokens = (
  state: QuotaState,
  claim: Claim,
  whole: number,
  now: number,
): ExceededLimit | null =>
  firstExceeded(state, claim, whole, now, (...check) =>
    exceededPerMinute(...check).filter(({ kind }) => kind === 'tokens'),
  );

function firstExceeded(
  state: QuotaState,
  claim: Claim,
  whole: number,
  now: number,
  check: Check,
): ExceededLimit | null {
  for (const subject of claim.subjects) {
    const limit = exceededForLong(state, claim, subject, whole, now);
    if (limit) return limit;
  }
  let worst: ExceededLimit | null = null;
  for (const subject of claim.subjects) {
    for (const limit of check(state, claim, subject, now)) {
      if ((limit.retryAfterMs ?? 0) > (worst?.retryAfterMs ?? 0)) worst = limit;
    }
  }
  return worst;
}
