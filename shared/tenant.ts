import * as z from 'zod';
import { integer } from './json-fields.ts';

const limit = integer(1, Number.MAX_SAFE_INTEGER).nullable();

/** Limits of a tenant or of one key; null = no limit. */
export const limits = z.strictObject({
  requestsPerMinute: limit.describe('Requests per minute.'),
  tokensPerMinute: limit.describe('Prompt and completion tokens per minute.'),
  concurrentRequests: limit.describe('Requests at the same time.'),
  tokensPerDay: limit.describe('Prompt and completion tokens per UTC day.'),
  tokensPerMonth: limit.describe('Prompt and completion tokens per UTC month.'),
  microsPerDay: limit.describe('Cost of all requests per UTC day, in micro-units of the currency.'),
  microsPerMonth: limit.describe('Cost of all requests per UTC month, in micro-units of the currency.'),
  softMicrosPerDay: limit.describe('Like micros_per_day, but requests go on: only alerts are sent.'),
  softMicrosPerMonth: limit.describe('Like micros_per_month, but requests go on: only alerts are sent.'),
  userRequestsPerMinute: limit.describe('Like requests_per_minute, for each end user (field `user`).'),
  userTokensPerMinute: limit.describe('Like tokens_per_minute, for each end user.'),
  userTokensPerDay: limit.describe('Like tokens_per_day, for each end user.'),
  userTokensPerMonth: limit.describe('Like tokens_per_month, for each end user.'),
  userMicrosPerDay: limit.describe('Like micros_per_day, for each end user.'),
  userMicrosPerMonth: limit.describe('Like micros_per_month, for each end user.'),
  userConcurrentRequests: limit.describe('Like concurrent_requests, for each end user.'),
  maxTokens: limit.describe('Maximum of max_tokens of one request.'),
  maxSequences: limit.describe('Maximum number of sequences of one request: prompts times max(n, best_of).'),
  maxLogprobBytes: limit.describe(
    'Maximum number of bytes of the rows of logprobs_format in one answer, as base64.',
  ),
});
export type Limits = z.infer<typeof limits>;
/** Also with all that was paid into a prepaid balance, in micro-units; null = no such balance. */
export type TenantLimits = Limits & { readonly creditMicros: number | null };
/** Limits of which some are not set. Their meaning depends on the reader: the plan's limit, or no limit. */
export type SomeLimits = { readonly [Name in keyof Limits]?: Limits[Name] | undefined };

export const UNLIMITED: TenantLimits = {
  ...limits.parse(Object.fromEntries(Object.keys(limits.shape).map((name) => [name, null]))),
  creditMicros: null,
};

export const dialectName = z.enum(['openai', 'fireworks', 'llamacpp', 'mistralrs', 'vllm']);
export type DialectName = z.infer<typeof dialectName>;

/** A tenant's share of an origin, relative to other waiting tenants. */
export const weight = z.number().gt(0).max(1000);

/** How objects of a JSON Schema are generated if the request does not say. */
export interface ObjectDefaults {
  /** Undeclared properties are allowed. */
  readonly openObjects: boolean;
  readonly anyKeyOrder: boolean;
}

export interface Tenant extends ObjectDefaults {
  readonly id: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly limits: TenantLimits;
  readonly weight: number;
  readonly dialect: DialectName;
  /** Completions wait for the next tokens of a limit per minute. Otherwise they end by their length. */
  readonly waitForTokens: boolean;
  /** Names of the tenant for models. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** `keys` manages the keys of the own tenant and generates nothing; `admin` manages everything. */
export const scope = z.enum(['completions', 'models', 'keys', 'admin']);
export type Scope = z.infer<typeof scope>;

/** What a key with the scope `admin` may do: everything, money, only read, or one tenant. */
export const adminRole = z
  .string()
  .regex(
    /^(owner|billing|read-only|tenant:(?!operator$)[a-z0-9][a-z0-9-]{0,62})$/,
    "expected 'owner', 'billing', 'read-only' or 'tenant:ID'",
  );

/** The stored part of an API key. The key itself is never stored. */
export interface ApiKey {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Role of an admin key; null for all others. */
  readonly role: string | null;
  /** Models that this key may use; null = all. */
  readonly models: readonly string[] | null;
  /** Networks from which the key may be used; null = all. */
  readonly allowedAddresses: readonly string[] | null;
  /** Unix milliseconds; null = never. */
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly limits: Limits;
}

/** The tenant and the key of a caller. */
export interface Principal {
  readonly tenant: Tenant;
  readonly key: ApiKey;
}

/** Returns whether the key is neither revoked nor expired. */
export const isActive = (key: ApiKey, now: number): boolean =>
  (key.revokedAt === null || key.revokedAt > now) && (key.expiresAt === null || key.expiresAt > now);
