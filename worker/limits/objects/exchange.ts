import type { Ending, Progress, Reservation, ReservationRequest } from '../protocol.ts';
import type { Standing } from '../quota/rate-limit-headers.ts';
import type { Amounts } from '../quota/slice.ts';

/**
 * What a region's limiter and the tenant's home say to each other. A region has one exchange on its way at a time. Any
 * of them may get lost, before or after home has read it: the region then repeats what is not known to be read.
 */

/** What the region has decided by itself. Home reads every entry once, in this order. */
export type JournalEntry =
  | {
      readonly kind: 'admitted';
      readonly request: ReservationRequest;
      /** Number of the slice that paid. */
      readonly slice: number;
      /** Unix milliseconds, for the usage record alone. */
      readonly at: number;
    }
  | (Ending & {
      readonly kind: 'settled';
      /** The slice, still held, that got the slot and the unused tokens back. */
      readonly refund: { readonly slice: number; readonly tokens: number } | null;
    });

export interface NumberedEntry {
  /** Increases with every entry of the region, without reuse. */
  readonly sequence: number;
  readonly entry: JournalEntry;
}

/** Whose requests a slice shall admit. */
export type Wish = Pick<ReservationRequest, 'keyId' | 'tenantLimits' | 'keyLimits'>;

export interface Exchange {
  /** The region's object, by which home can call it. */
  readonly region: string;
  /** Increases with every exchange of the region: home ignores one that arrives after a later one. */
  readonly number: number;
  readonly entries: readonly NumberedEntry[];
  readonly progress: readonly { readonly requestId: string; readonly progress: Progress }[];
  /** Slices the region may still spend; whatever else it had is home's again. */
  readonly holding: readonly number[];
  /** Requests the region cannot admit by itself. */
  readonly claims: readonly ReservationRequest[];
  readonly wishes: readonly Wish[];
}

export interface GrantedSlice {
  readonly keyId: string;
  readonly number: number;
  readonly amounts: Amounts;
  /** From the moment the exchange was sent, which the region's own clock knows. */
  readonly lifeMs: number;
  /** Of tenant and key at home, after the grant. */
  readonly standing: Standing;
}

export interface ExchangeAnswer {
  /** Every entry up to this one has been read. */
  readonly cursor: number;
  /** Of the claims, in their order. */
  readonly reservations: readonly Reservation[];
  readonly slices: readonly GrantedSlice[];
}
