import { ApiError, retryAfter } from '@continuo/shared/errors.ts';
import { invalidKey, suspended } from '@continuo/shared/key-errors.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import { isEndUser } from './end-user.ts';
import type { Spend } from './quota/budget.ts';
import type { ExceededLimit, ReservationResult } from './quota/protocol.ts';
import { goDuration } from './quota/rate-limit-headers.ts';
import type { RequestCost } from './reservation.ts';

interface RefusedCost {
  /** Null if the body has not been read. */
  readonly model: RequestCost['model'] | null;
  /** What the request may need until its end, of which a part is reserved at first. */
  readonly most?: Spend;
}

export type Refusal = Extract<ReservationResult, { admitted: false }>['refusal'];

/** Names of the limits in errors and in usage, and what they limit of a spend. */
const LIMITS = {
  requests: ['requests per min (RPM)', 'requests_per_minute', null],
  tokens: ['tokens per min (TPM)', 'tokens_per_minute', 'tokens'],
  too_large: ['tokens per min (TPM)', 'tokens_per_minute', 'tokens'],
  concurrency: ['concurrent requests', 'concurrent_requests', null],
  day: ['tokens per day', 'tokens_per_day', 'tokens'],
  month: ['tokens per month', 'tokens_per_month', 'tokens'],
  moneyDay: ['cost per day (micro-units)', 'micros_per_day', 'money'],
  moneyMonth: ['cost per month (micro-units)', 'micros_per_month', 'money'],
  balance: ['balance (micro-units)', 'balance', 'money'],
} as const satisfies Record<ExceededLimit['kind'], readonly [string, string, keyof Spend | null]>;

/** Returns the name of the limit that ended a completion, for its usage. */
export const limitName = ({ kind, subject }: ExceededLimit): string =>
  isEndUser(subject) ? `user_${LIMITS[kind][1]}` : LIMITS[kind][1];

/** "Rate limit reached for tiny in tenant acme on requests per min (RPM): Limit 3, Used 3, Requested 1." */
function describe(
  opening: string,
  { kind, subject, limit, used, requested }: ExceededLimit,
  { tenant, key }: Principal,
  { model, most }: RefusedCost,
): string {
  const holder = isEndUser(subject)
    ? "the end user of 'user'"
    : subject === key.id
      ? `key ${key.id}`
      : `tenant ${tenant.id}`;
  const [name, , resource] = LIMITS[kind];
  const whole = (resource && most?.[resource]) ?? requested;
  const first = whole > requested ? `${whole}, of which ${requested} must be left at the start` : requested;
  const target = model === null ? '' : ` for ${model}`;
  return `${opening}${target} in ${holder} on ${name}: Limit ${limit}, Used ${used}, Requested ${first}.`;
}

/** Admitting everyone would switch the limits off when they are needed most. */
export const unchecked = (): ApiError =>
  new ApiError(
    'server_is_overloaded',
    'The limits of this tenant cannot be checked right now. Retry the request.',
  );

const OVERLOADED_WAIT_MS = 1_000;

/** The limiter has more calls than it can take. Clients wait 1 to 3 s, so as not to return together. */
export function limiterOverloaded(random: number): ApiError {
  const wait = OVERLOADED_WAIT_MS * (1 + 2 * random);
  const message = `Too many requests of this tenant arrive at the same time. Please try again in ${goDuration(wait)}.`;
  return new ApiError('rate_limit_exceeded', message, {
    headers: { ...retryAfter(wait), 'x-should-retry': 'true' },
  });
}

/**
 * Maps a refused reservation to the error the caller sees. If waiting helps, the error says how long.
 * Otherwise it tells clients not to retry.
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
  const [, , resource] = LIMITS[refusal.kind];
  const code = resource === 'tokens' ? 'tokens_limit_exceeded' : 'rate_limit_exceeded';
  // Only running requests make a day, a month or a balance wait.
  const cause =
    resource === null || refusal.kind === 'tokens' ? '' : ' Running requests have reserved what is missing.';
  const message = `${describe('Rate limit reached', refusal, principal, cost)}${cause} Please try again in ${goDuration(wait)}.`;
  return new ApiError(code, message, {
    headers: { ...retryAfter(wait), 'x-should-retry': 'true' },
  });
}
