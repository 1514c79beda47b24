import {
  type Claim,
  type ExceededLimit,
  periodUse,
  type QuotaState,
  type Subject,
  subjectState,
} from './state.ts';
import { used, waitFor } from './window.ts';

const MIN_SLOT_WAIT_MS = 1_000;
const MAX_SLOT_WAIT_MS = 30_000;

/**
 * Estimates when the next of a subject's running requests ends. The ages of requests that are running at a random moment
 * have the same mean as the times that they still need, and the first of n ends after about the n-th part.
 */
function slotWaitMs(state: QuotaState, { id }: Subject, now: number): number {
  const running = [...state.reservations.values()].filter(({ subjects }) => subjects.includes(id));
  const ages = running.reduce((sum, { second }) => sum + Math.max(0, now - second * 1000), 0);
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
  now: number,
): ExceededLimit | null {
  const { limits } = subject;
  const held = subjectState(state, subject.id);
  if (limits.tokensPerMinute !== null && claim.tokens > limits.tokensPerMinute) {
    const taken = used(held.tokens, now);
    return exceeded(subject, 'too_large', limits.tokensPerMinute, taken, claim.tokens, null);
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

/** Returns the limits of a subject that have no room now but will have later. */
function exceededForNow(state: QuotaState, claim: Claim, subject: Subject, now: number): ExceededLimit[] {
  const { limits } = subject;
  const held = subjectState(state, subject.id);
  const found: ExceededLimit[] = [];
  for (const [kind, limit, amount] of [
    ['requests', limits.requestsPerMinute, 1],
    ['tokens', limits.tokensPerMinute, claim.tokens],
  ] as const) {
    if (limit === null) continue;
    const wait = waitFor(held[kind], limit, amount, now);
    if (wait > 0) found.push(exceeded(subject, kind, limit, used(held[kind], now), amount, wait));
  }
  const slots = limits.concurrentRequests;
  if (slots !== null && held.running >= slots) {
    found.push(exceeded(subject, 'concurrency', slots, held.running, 1, slotWaitMs(state, subject, now)));
  }
  return found;
}

/** Returns the limit that a claim exceeds: one that waiting does not help with first, then the one with the longest wait. */
export const exceededLimit = (state: QuotaState, claim: Claim, now: number): ExceededLimit | null =>
  firstExceeded(state, claim, now, () => true);

/** Like `exceededLimit`, for the tokens of a request that already has its slot. */
export const exceededTokens = (state: QuotaState, claim: Claim, now: number): ExceededLimit | null =>
  firstExceeded(state, claim, now, ({ kind }) => kind === 'tokens');

function firstExceeded(
  state: QuotaState,
  claim: Claim,
  now: number,
  counts: (limit: ExceededLimit) => boolean,
): ExceededLimit | null {
  for (const subject of claim.subjects) {
    const limit = exceededForLong(state, claim, subject, now);
    if (limit) return limit;
  }
  let worst: ExceededLimit | null = null;
  for (const subject of claim.subjects) {
    for (const limit of exceededForNow(state, claim, subject, now).filter(counts)) {
      if ((limit.retryAfterMs ?? 0) > (worst?.retryAfterMs ?? 0)) worst = limit;
    }
  }
  return worst;
}
