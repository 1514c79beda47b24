import { ApiError, retryAfter } from '@continuo/shared/errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { invalidKey, suspended } from '../auth/auth-errors.ts';
import type { ExceededLimit, ReservationResult } from '../env/limiter-protocol.ts';
import { isEndUser } from './end-user.ts';
import { goDuration } from './quota/rate-limit-headers.ts';
import type { RequestCost } from './request-cost.ts';

/** Its model is null if the body has not been read. */
type RefusedCost = { readonly model: RequestCost['model'] | null };

type Refusal = Extract<ReservationResult, { admitted: false }>['refusal'];

const LIMIT_NAMES = {
  requests: 'requests per min (RPM)',
  tokens: 'tokens per min (TPM)',
  too_large: 'tokens per min (TPM)',
  concurrency: 'concurrent requests',
  day: 'tokens per day',
  month: 'tokens per month',
  moneyDay: 'cost per day',
  moneyMonth: 'cost per month',
  balance: 'balance',
} as const satisfies Record<ExceededLimit['kind'], string>;

/** "Rate limit reached for tiny in tenant acme on requests per min (RPM): Limit 3, Used 3, Requested 1." */
function describe(
  opening: string,
  exceeded: ExceededLimit,
  { tenant, key }: Principal,
  { model }: RefusedCost,
): string {
  const holder = isEndUser(exceeded.subject)
    ? "the end user of 'user'"
    : exceeded.subject === key.id
      ? `key ${key.id}`
      : `tenant ${tenant.id}`;
  const numbers = `Limit ${exceeded.limit}, Used ${exceeded.used}, Requested ${exceeded.requested}.`;
  const subject = model === null ? '' : ` for ${model}`;
  return `${opening}${subject} in ${holder} on ${LIMIT_NAMES[exceeded.kind]}: ${numbers}`;
}

/** Admitting everyone would switch the limits off when they are needed most. */
export const unchecked = (): ApiError =>
  new ApiError(
    'server_is_overloaded',
    'The limits of this tenant cannot be checked right now. Retry the request.',
  );

const OVERLOADED_WAIT_MS = 1_000;

/** The limiter has more calls than it can take. Clients wait 1 to 3 s, so that they do not return together. */
export function limiterOverloaded(random: number): ApiError {
  const wait = OVERLOADED_WAIT_MS * (1 + 2 * random);
  const message = `Too many requests of this tenant arrive at the same time. Please try again in ${goDuration(wait)}.`;
  return new ApiError('rate_limit_exceeded', message, {
    headers: { ...retryAfter(wait), 'x-should-retry': 'true' },
  });
}

/**
 * Maps a refused reservation to the error the caller sees. If waiting helps, the error says how long. Otherwise it tells
 * clients not to retry.
 */
export function limitError(refusal: Refusal, principal: Principal, cost: RefusedCost): ApiError {
  if (refusal === 'revoked') return invalidKey();
  if (refusal === 'suspended') return suspended();
  if (refusal === 'expired') return unchecked();
  const final = { headers: { 'x-should-retry': 'false' } };
  if (refusal.kind !== 'too_large' && refusal.retryAfterMs === null) {
    return new ApiError('insufficient_quota', describe('Quota exceeded', refusal, principal, cost), final);
  }
  if (refusal.kind === 'too_large') {
    const message = `${describe('Request too large', refusal, principal, cost)} The prompt or max_tokens must be reduced.`;
    return new ApiError('tokens_limit_exceeded', message, final);
  }
  const wait = Math.max(1, Math.ceil(refusal.retryAfterMs ?? 0));
  const code = refusal.kind === 'tokens' ? 'tokens_limit_exceeded' : 'rate_limit_exceeded';
  const message = `${describe('Rate limit reached', refusal, principal, cost)} Please try again in ${goDuration(wait)}.`;
  return new ApiError(code, message, {
    headers: { ...retryAfter(wait), 'x-should-retry': 'true' },
  });
}
