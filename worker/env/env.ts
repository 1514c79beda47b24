import type { TenantLimiterRpc } from '@continuo/limits/tenant-rpc.ts';
import type { BatchRunRpc } from './batch-protocol.ts';
import type { IdempotentAnswerRpc, StreamTailRpc } from './replay-protocol.ts';
import type { Variables } from './settings.ts';

/** Platform services bound to the Worker. */
interface Bindings {
  /** Files of the page. */
  readonly ASSETS: Fetcher;
  /** Exchanges the one-time code of a local start's link for its key; absent in a deployment. */
  readonly PAGE_KEY?: Fetcher;
  /** Tenants, keys and plans, and the summary of usage. */
  readonly DB: D1Database;
  /** The usage ledger of releases up to 0.2.0, from which each tenant's object takes its rows. */
  readonly USAGE_DB?: D1Database;
  /** One object per tenant, with its limits, reservations and usage. */
  readonly LIMITER: DurableObjectNamespace<TenantLimiterRpc>;
  /** One object per resumable stream. */
  readonly STREAMS: DurableObjectNamespace<StreamTailRpc>;
  /** One object per idempotency key in use. */
  readonly ANSWERS: DurableObjectNamespace<IdempotentAnswerRpc>;
  /** One object per running batch. */
  readonly BATCHES: DurableObjectNamespace<BatchRunRpc>;
  /** Files of tenants, and the records of their batches. */
  readonly FILES: R2Bucket;
  /** Receives one data point per request. */
  readonly USAGE?: AnalyticsEngineDataset;
  /** One data point per response, refusals included. */
  readonly REQUESTS?: AnalyticsEngineDataset;
  /** Approximate rate limits per place that protect the Worker from floods. */
  readonly FLOOD_BY_ADDRESS?: RateLimit;
  readonly FLOOD_BY_KEY?: RateLimit;
  /** On one host, connects to public addresses only. Cloudflare's network reaches no others. */
  readonly PUBLIC_NETWORK?: Fetcher;
}

/** Bindings and variables as the platform provides them. `parseSettings` reads the variables' texts. */
export interface Env extends Bindings, Variables {
  /** Shared with the origin; signs every request to it. Upstreams may name other secrets instead. */
  readonly ORIGIN_SECRET?: string;
}

/** Returns the secret of this name. @throws Error if it is not set */
export function secretOf(env: Env, name: string): string {
  const value: unknown = Reflect.get(env, name);
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`The secret ${name} is not set.`);
}

/** Returns the binding of this name. @throws Error if it does not exist or has no `fetch` */
export function fetcherOf(env: Env, name: string): Fetcher {
  const value: unknown = Reflect.get(env, name);
  if (typeof value === 'object' && value !== null && 'fetch' in value) return value as Fetcher;
  throw new Error(`There is no binding ${name} with a fetch method.`);
}
