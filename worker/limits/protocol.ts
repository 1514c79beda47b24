import type { Usage } from '../../shared/generation.ts';
import type { Limits } from '../../shared/tenant.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import type { Refusal } from './quota/state.ts';

/** What the Worker and a tenant's limiter say to each other. Plain data: it crosses machines. */

export interface ReservationRequest {
  /** Unique; settling and renewing name it. */
  readonly requestId: string;
  readonly tenantId: string;
  readonly keyId: string;
  readonly model: string;
  /** Estimated prompt tokens plus everything that may be generated. */
  readonly tokens: number;
  readonly tenantLimits: Limits;
  readonly keyLimits: Limits;
  /** The lease ends by itself after this many milliseconds without a sign of life. */
  readonly leaseMs: number;
}

/** Whose limits are asked about. */
export type Inquiry = Pick<ReservationRequest, 'tenantId' | 'keyId' | 'tenantLimits' | 'keyLimits'>;

export type Reservation =
  | { readonly admitted: true; readonly headers: Record<string, string> }
  | {
      readonly admitted: false;
      /** By name when the key or tenant was blocked later than the Worker's cache knows. */
      readonly refusal: Refusal | 'revoked' | 'suspended';
      readonly headers: Record<string, string>;
    };

/** The Worker's account of a request that has ended. */
export type Settlement = Pick<
  UsageRecord,
  'status' | 'usage' | 'errorCode' | 'finishReasons' | 'upstream' | 'latencyMs' | 'firstTokenMs'
>;

/** A request that has ended. Telling it twice is telling it once. */
export interface Ending {
  readonly requestId: string;
  readonly settlement: Settlement;
  /** Its upstream may know of more than was seen of it, and is asked before the record is written. */
  readonly inquire?: boolean;
}

/** What a running request has used so far. */
export interface Progress {
  /** As in the reservation. */
  readonly leaseMs: number;
  readonly usage: Usage;
  readonly upstream: string | null;
}
