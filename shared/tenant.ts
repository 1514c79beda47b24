import * as z from 'zod';
import { integer } from './json-fields.ts';

const limit = integer(1, Number.MAX_SAFE_INTEGER).nullable();

/** Limits of a tenant or of one key; null = no limit. */
export const limits = z.strictObject({
  requestsPerMinute: limit,
  tokensPerMinute: limit,
  concurrentRequests: limit,
  tokensPerDay: limit,
  tokensPerMonth: limit,
  /** Largest max_tokens of one request. */
  maxTokens: limit,
  /** Largest number of sequences (prompts · max(n, best_of)) of one request. */
  maxSequences: limit,
});
export type Limits = z.infer<typeof limits>;

export const UNLIMITED: Limits = {
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  tokensPerDay: null,
  tokensPerMonth: null,
  maxTokens: null,
  maxSequences: null,
};

export const dialectName = z.enum(['openai', 'fireworks', 'llamacpp', 'mistralrs', 'vllm']);
export type DialectName = z.infer<typeof dialectName>;

export const tenant = z.object({
  id: z.string(),
  name: z.string(),
  suspended: z.boolean(),
  limits,
  /** Share of an origin relative to other waiting tenants. */
  weight: z.number().gt(0).max(1000),
  dialect: dialectName,
});
export type Tenant = z.infer<typeof tenant>;

export const scope = z.enum(['completions', 'models', 'admin']);
export type Scope = z.infer<typeof scope>;

/** What is stored of a key; the secret itself is never stored. */
export const apiKey = z.object({
  id: z.string(),
  tenantId: z.string(),
  name: z.string(),
  scopes: z.array(scope),
  /** Models this key may use; null = all of the catalogue. */
  models: z.array(z.string()).nullable(),
  /** Unix milliseconds; null = never. */
  expiresAt: z.number().nullable(),
  revokedAt: z.number().nullable(),
  limits,
});
export type ApiKey = z.infer<typeof apiKey>;

/** Who is calling. */
export interface Principal {
  readonly tenant: Tenant;
  readonly key: ApiKey;
}
