import type { Usage } from '@continuo/shared/generation.ts';
import type { Limits, TenantLimits } from '@continuo/shared/tenant.ts';
import type { Price } from '../usage/price.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import type { Amounts, Budget, LimitableBudget, Spend } from './budget.ts';

/**
 * Messages between the Worker's isolates and a tenant's object. Plain data, because it crosses machines. Any
 * message may be lost, late, or arrive twice, so all calls are idempotent.
 */

/** A tenant and one of its keys, with their limits. */
export interface LimitHolder {
  readonly tenantId: string;
  readonly keyId: string;
  readonly tenantLimits: TenantLimits;
  readonly keyLimits: Limits;
  /** The end user of a request, if end users have limits. Only the object counts them. */
  readonly endUser?: EndUser | null;
}

/** Who uses a tenant's application, as the field `user` says. */
export interface EndUser {
  /** Hash of the name. */
  readonly hash: string;
  readonly limits: Limits;
}

/** A request that needs a reservation for its estimated prompt and a part of its completion. */
export interface Claimant extends LimitHolder, Spend {
  readonly model: string;
  /** Null = its tokens cost nothing. */
  readonly price: Price | null;
  /** The reservation ends after this many milliseconds without a renewal. */
  readonly ttlMs: number;
}

export interface ReservationRequest extends Claimant {
  /** Unique; renewal and settlement refer to it. */
  readonly requestId: string;
  /**
   * The request has a reservation, which must be raised to these totals. `prompt`: to all of them, for its
   * true prompt. `growth`: to what is left, at least one more, for what it generates.
   */
  readonly raise?: 'prompt' | 'growth';
  /** Reserves nothing: asks only whether there is room. */
  readonly probe?: boolean;
}

/** What a subject has used of each budget. */
export type BudgetUse = Readonly<Record<Budget['name'], number>>;

/** Why a reservation was refused. */
export interface ExceededLimit {
  readonly kind: LimitableBudget['name'] | 'too_large';
  /** Id of the tenant, the key or the end user. */
  readonly subject: string;
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
  /** Milliseconds after which the same request fits if nothing takes the room; null = never. */
  readonly retryAfterMs: number | null;
  /** Isolates hold unused amounts of it. */
  readonly held?: true;
}

/** A revoked key, or a key of a suspended tenant. */
export type Block = 'revoked' | 'suspended';

export type ReservationResult =
  | {
      readonly admitted: true;
      readonly headers: Record<string, string>;
      /** All that the request has reserved at the object; absent after a probe. */
      readonly tokens?: number;
      readonly money?: number;
    }
  | {
      readonly admitted: false;
      /** A limit; a block if the Worker had cached the key; `expired` if there is no reservation to raise. */
      readonly refusal: ExceededLimit | Block | 'expired';
      readonly headers: Record<string, string>;
    };

/** The Worker's usage account of an ended request. */
export type Settlement = Pick<
  UsageRecord,
  'status' | 'usage' | 'errorCode' | 'finishReasons' | 'upstream' | 'latencyMs' | 'firstTokenMs' | 'endUser'
>;

/** The end of a request. */
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

/** An end, and the slice that got the slot and what was not spent back, if the isolate still holds it. */
export interface SettledRequest extends SettlementRequest {
  readonly refund: (Spend & { readonly slice: number }) | null;
}

/**
 * A decision that an isolate has made without its object. The object applies each decision once, in order.
 */
export type Decision =
  | (Spend & {
      readonly kind: 'admitted';
      readonly requestId: string;
      /** The slice that the request was charged to. It names tenant, key and lifetime. */
      readonly slice: number;
      readonly model: string;
      /** Unix milliseconds by the isolate's clock; only for the usage record. */
      readonly at: number;
      /** Its end, if it has ended before a call has carried this decision. */
      readonly end?: Omit<SettledRequest, 'requestId'>;
    })
  /** A running request has got more from a slice. */
  | (Spend & { readonly kind: 'extended'; readonly requestId: string; readonly slice: number })
  | (SettledRequest & { readonly kind: 'settled' })
  /** The isolate no longer uses the slice. */
  | { readonly kind: 'returned'; readonly slice: number };

/** A key that needs a slice, which must pay at least for a request that spends so much. */
export interface SliceRequest extends Omit<Claimant, 'model' | 'price' | 'endUser'> {
  /** More than this would be of no use. Older isolates do not say. */
  readonly most?: Readonly<Record<keyof Amounts, number>>;
}

/** One call of an isolate to a tenant's object. All parts may be empty. */
export interface LimiterCall {
  /** Random, unique id of the isolate. */
  readonly isolate: string;
  /** Increases with every call of the isolate. The object ignores a call that arrives twice. */
  readonly number: number;
  /** Number of the first decision. Numbers count the decisions of the isolate for this tenant. */
  readonly first: number;
  /** All unconfirmed decisions, or none. The object skips those that it has applied. */
  readonly decisions: readonly Decision[];
  readonly renewals: readonly (Renewal & { readonly requestId: string })[];
  /** Decided after everything above has been applied, so that it can use what that frees. */
  readonly reservation: ReservationRequest | null;
  /** Keys that need a new slice. */
  readonly sliceRequests: readonly SliceRequest[];
}

export interface LimiterReply {
  /**
   * The object has applied all decisions up to this number; null if it counts the isolate as lost: take a new
   * id.
   */
  readonly cursor: number | null;
  readonly reservation: ReservationResult | null;
  /** None if the reservation was refused. */
  readonly slices: readonly GrantedSlice[];
  /** Blocked keys among those that hold slices. */
  readonly blocked: readonly string[];
  /**
   * Milliseconds from the call to the next regular one: many isolates take turns. 0 = as the isolate likes.
   * Older objects do not say.
   */
  readonly nextInMs?: number;
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
  /** Milliseconds from the moment the isolate sent the call, by the isolate's clock. */
  readonly lifeMs: number;
  /** Status of tenant and key at the object, after the grant. */
  readonly status: RateLimitStatus;
}
