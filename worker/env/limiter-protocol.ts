import type { Usage } from '@continuo/shared/generation.ts';
import type { Limits } from '@continuo/shared/tenant.ts';
import type { UsageRecord } from '../usage/usage-record.ts';

/**
 * Messages between the Worker, a tenant's home limiter and its regional limiters. Plain data, because it crosses machines.
 * Any message may be lost or arrive twice, so all calls are idempotent.
 */

/** A tenant and one of its keys, with their limits. */
export interface LimitHolder {
  readonly tenantId: string;
  readonly keyId: string;
  readonly tenantLimits: Limits;
  readonly keyLimits: Limits;
}

export interface ReservationRequest extends LimitHolder {
  /** Unique; renewal and settlement refer to it. */
  readonly requestId: string;
  readonly model: string;
  /** Estimated prompt tokens plus the maximum number of generated tokens. */
  readonly tokens: number;
  /** The reservation ends after this many milliseconds without a renewal. */
  readonly ttlMs: number;
  /** The request has a reservation, which must be raised to `tokens`. */
  readonly raise?: boolean;
  /** Reserves nothing: asks only whether there is room. */
  readonly probe?: boolean;
}

/** Why a reservation was refused. */
export interface ExceededLimit {
  readonly kind: 'requests' | 'tokens' | 'concurrency' | 'too_large' | 'day' | 'month';
  /** Id of the tenant or key. */
  readonly subject: string;
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
  /** Milliseconds after which the same request fits if no other takes the room; null = waiting does not help. */
  readonly retryAfterMs: number | null;
}

/** A revoked key, or a key of a suspended tenant. */
export type Block = 'revoked' | 'suspended';

export type ReservationResult =
  | { readonly admitted: true; readonly headers: Record<string, string> }
  | {
      readonly admitted: false;
      /** A limit; a block if the Worker had cached the key; `expired` if there is no reservation to raise. */
      readonly refusal: ExceededLimit | Block | 'expired';
      readonly headers: Record<string, string>;
    };

/** The Worker's usage account of an ended request. */
export type Settlement = Pick<
  UsageRecord,
  'status' | 'usage' | 'errorCode' | 'finishReasons' | 'upstream' | 'latencyMs' | 'firstTokenMs'
>;

/** Reports the end of a request. */
export interface SettlementRequest {
  readonly requestId: string;
  readonly settlement: Settlement;
  /** The upstream may have generated more than the Worker saw: ask it before writing the usage record. */
  readonly inquire?: boolean;
}

/** Renews a reservation and reports what the request has used so far. */
export interface Renewal {
  /** As in the reservation request. */
  readonly ttlMs: number;
  readonly usage: Usage;
  readonly upstream: string | null;
}

/** The calls that a Worker makes to its nearest limiter: a region's, or the tenant's home limiter. */
export interface Limiter {
  /** Applies the settlements first, so that the request can use what they free. */
  reserve(request: ReservationRequest, settlements: readonly SettlementRequest[]): Promise<ReservationResult>;
  renew(requestId: string, renewal: Renewal): Promise<unknown>;
  settle(settlements: readonly SettlementRequest[]): Promise<unknown>;
  /** Returns `x-ratelimit-*` headers; changes nothing. */
  rateLimitHeaders(holder: LimitHolder): Promise<Record<string, string>>;
}

/** A tenant's home limiter. */
export interface TenantLimiterRpc extends Limiter, Rpc.DurableObjectBranded {
  renew(requestId: string, renewal: Renewal): Promise<boolean>;
  settle(settlements: readonly SettlementRequest[]): Promise<number>;
  sync(sync: RegionSync): Promise<RegionSyncResult | null>;
  block(keyId: string | null, blocked: boolean): Promise<void>;
  /** Returns whether a key or its tenant is blocked. */
  blockOf(keyId: string): Promise<Block | null>;
}

/** A regional limiter. */
export interface RegionLimiterRpc extends Limiter, Rpc.DurableObjectBranded {
  renew(requestId: string, renewal: Renewal): Promise<void>;
  settle(settlements: readonly SettlementRequest[]): Promise<void>;
  recall(): Promise<void>;
}

/** A decision that a region has made without its home. Home applies each decision once, in order. */
export type RegionDecision =
  | {
      readonly kind: 'admitted';
      readonly request: ReservationRequest;
      /** Number of the slice that the request was charged to. */
      readonly slice: number;
      /** Unix milliseconds; only for the usage record. */
      readonly at: number;
    }
  | (SettlementRequest & {
      readonly kind: 'settled';
      /** The slice that got the slot and the unused tokens back, if the region still holds it. */
      readonly refund: { readonly slice: number; readonly tokens: number } | null;
    });

export interface NumberedDecision {
  /** Increases with every decision of the region; never reused. */
  readonly sequence: number;
  readonly decision: RegionDecision;
}

/**
 * Sent by a region to its home. A region waits for the result before it sends the next. If the result is lost, the region
 * sends the unconfirmed decisions again.
 */
export interface RegionSync {
  /** Id of the region's object, by which home can call it. */
  readonly region: string;
  /** Increases with every sync of the region. Home ignores one that arrives after a later one. */
  readonly number: number;
  readonly decisions: readonly NumberedDecision[];
  readonly renewals: readonly { readonly requestId: string; readonly renewal: Renewal }[];
  /** Numbers of the slices that the region still holds. Home takes all others back. */
  readonly heldSlices: readonly number[];
  /** Requests that no slice of the region can pay for. */
  readonly requests: readonly ReservationRequest[];
  /** Keys that need a new slice. */
  readonly sliceRequests: readonly LimitHolder[];
}

/** Amounts of a slice; null = no limit. */
export interface Amounts {
  requests: number | null;
  tokens: number | null;
  slots: number | null;
}

export interface Gauge {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

/** Use of the limits per minute; null = no limit. */
export interface RateLimitStatus {
  readonly requests: Gauge | null;
  readonly tokens: Gauge | null;
}

export interface GrantedSlice {
  readonly keyId: string;
  readonly number: number;
  readonly amounts: Amounts;
  /** Milliseconds from the moment the region sent the sync, by the region's clock. */
  readonly lifeMs: number;
  /** Status of tenant and key at home, after the grant. */
  readonly status: RateLimitStatus;
}

export interface RegionSyncResult {
  /** Home has applied all decisions up to this sequence number. */
  readonly cursor: number;
  /** Results of the requests, in their order. */
  readonly reservations: readonly ReservationResult[];
  readonly slices: readonly GrantedSlice[];
}
