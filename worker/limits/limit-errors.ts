import { ApiError, retryAfter } from '../../shared/errors.ts';
import type { Principal } from '../../shared/tenant.ts';
import { invalidKey, suspended } from '../auth/auth-errors.ts';
import type { Cost } from './admission.ts';
import type { Reservation } from './protocol.ts';
import { goDuration } from './quota/rate-limit-headers.ts';
import type { Refusal } from './quota/state.ts';

type Reason = Extract<Reservation, { admitted: false }>['refusal'];

const LIMIT_NAMES = {
  requests: 'requests per min (RPM)',
  tokens: 'tokens per min (TPM)',
  too_large: 'tokens per min (TPM)',
  concurrency: 'concurrent requests',
  day: 'tokens per day',
  month: 'tokens per month',
} as const satisfies Record<Refusal['kind'], string>;

/** "Rate limit reached for tiny in tenant acme on requests per min (RPM): Limit 3, Used 3, Requested 1." */
function facts(opening: string, refusal: Refusal, { tenant, key }: Principal, { model }: Cost): string {
  const holder = refusal.subject === key.id ? `key ${key.id}` : `tenant ${tenant.id}`;
  const numbers = `Limit ${refusal.limit}, Used ${refusal.used}, Requested ${refusal.requested}.`;
  return `${opening} for ${model} in ${holder} on ${LIMIT_NAMES[refusal.kind]}: ${numbers}`;
}

/** The 429 of a refusal: passing ones say how long to wait, lasting ones tell clients not to try again. */
export function refused(refusal: Reason, principal: Principal, cost: Cost): ApiError {
  if (refusal === 'revoked') return invalidKey();
  if (refusal === 'suspended') return suspended();
  const final = { headers: { 'x-should-retry': 'false' } };
  if (refusal.kind === 'day' || refusal.kind === 'month') {
    return new ApiError('insufficient_quota', facts('Quota exceeded', refusal, principal, cost), final);
  }
  if (refusal.kind === 'too_large') {
    const message = `${facts('Request too large', refusal, principal, cost)} The prompt or max_tokens must be reduced.`;
    return new ApiError('tokens_limit_exceeded', message, final);
  }
  const wait = Math.max(1, Math.ceil(refusal.retryAfterMs ?? 0));
  const code = refusal.kind === 'tokens' ? 'tokens_limit_exceeded' : 'rate_limit_exceeded';
  const message = `${facts('Rate limit reached', refusal, principal, cost)} Please try again in ${goDuration(wait)}.`;
  return new ApiError(code, message, {
    headers: { ...retryAfter(wait), 'x-should-retry': 'true' },
  });
}
