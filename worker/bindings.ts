import type { RegionLimiter } from './limits/objects/region-limiter.ts';
import type { TenantLimiter } from './limits/objects/tenant-limiter.ts';
import type { IdempotentAnswer } from './replay/objects/idempotent-answer.ts';
import type { StreamTail } from './replay/objects/stream-tail.ts';

/** The platform's parts the Worker is bound to. */
export interface Bindings {
  /** Tenants, keys, plans and the usage ledger. */
  readonly DB: D1Database;
  /** One object per tenant: limits, leases, usage outbox. */
  readonly LIMITER: DurableObjectNamespace<TenantLimiter>;
  /** One object per tenant and region, where LIMIT_REGIONS is set: slices of the tenant's budget. */
  readonly REGIONS: DurableObjectNamespace<RegionLimiter>;
  /** One object per resumable stream. */
  readonly STREAMS: DurableObjectNamespace<StreamTail>;
  /** One object per idempotency key in use. */
  readonly ANSWERS: DurableObjectNamespace<IdempotentAnswer>;
  /** One data point per request. */
  readonly USAGE?: AnalyticsEngineDataset;
  /** Flood shields in front of everything; per place, approximate, and cheap. */
  readonly FLOOD_BY_ADDRESS?: RateLimit;
  readonly FLOOD_BY_KEY?: RateLimit;
}
