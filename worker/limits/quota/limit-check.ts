import { type Claim, periodUse, type QuotaState, type Refusal, type Subject, subjectState } from './state.ts';
import { used, waitFor } from './window.ts';

/** Nobody knows when a running request ends; clients ask again after this time. */
const CONCURRENCY_RETRY_MS = 1000;

const fact = (
  subject: Subject,
  kind: Refusal['kind'],
  limit: number,
  taken: number,
  requested: number,
  retryAfterMs: number | null,
): Refusal => ({ kind, subject: subject.id, limit, used: taken, requested, retryAfterMs });

/** What waiting cannot mend: a request larger than its limit, a spent budget. */
function lasting(state: QuotaState, claim: Claim, subject: Subject, now: number): Refusal | null {
  const { limits } = subject;
  const held = subjectState(state, subject.id);
  if (limits.tokensPerMinute !== null && claim.tokens > limits.tokensPerMinute) {
    const taken = used(held.tokens, now);
    return fact(subject, 'too_large', limits.tokensPerMinute, taken, claim.tokens, null);
  }
  for (const [kind, limit] of [
    ['month', limits.tokensPerMonth],
    ['day', limits.tokensPerDay],
  ] as const) {
    if (limit === null) continue;
    const taken = periodUse(held, kind, now);
    if (taken + claim.tokens > limit) return fact(subject, kind, limit, taken, claim.tokens, null);
  }
  return null;
}

/** Every limit of a subject that has no room now but will have. */
function passing(state: QuotaState, claim: Claim, subject: Subject, now: number): Refusal[] {
  const { limits } = subject;
  const held = subjectState(state, subject.id);
  const refusals: Refusal[] = [];
  for (const [kind, limit, amount] of [
    ['requests', limits.requestsPerMinute, 1],
    ['tokens', limits.tokensPerMinute, claim.tokens],
  ] as const) {
    if (limit === null) continue;
    const wait = waitFor(held[kind], limit, amount, now);
    if (wait > 0) refusals.push(fact(subject, kind, limit, used(held[kind], now), amount, wait));
  }
  const slots = limits.concurrentRequests;
  if (slots !== null && held.running >= slots) {
    refusals.push(fact(subject, 'concurrency', slots, held.running, 1, CONCURRENCY_RETRY_MS));
  }
  return refusals;
}

/** Why a claim must be refused: what lasts before what passes, then the longest wait. Null = there is room. */
export function refusalOf(state: QuotaState, claim: Claim, now: number): Refusal | null {
  for (const subject of claim.subjects) {
    const refusal = lasting(state, claim, subject, now);
    if (refusal) return refusal;
  }
  let worst: Refusal | null = null;
  for (const subject of claim.subjects) {
    for (const refusal of passing(state, claim, subject, now)) {
      if ((refusal.retryAfterMs ?? 0) > (worst?.retryAfterMs ?? 0)) worst = refusal;
    }
  }
  return worst;
}
