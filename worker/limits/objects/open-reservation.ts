import type { ReservationRequest } from '../quota/protocol.ts';
import type { QuotaReservation } from '../quota/state.ts';
import { priceOf } from '../usage/reservation-id.ts';
import { NO_USAGE, type UsageRecord } from '../usage/usage-record.ts';

/** A request that the object knows only from an isolate's decision. */
export type AdmittedRequest = Pick<
  ReservationRequest,
  'requestId' | 'tenantId' | 'keyId' | 'model' | 'ttlMs' | 'endUser'
>;

/** A running request: its reservation and the usage record that would be written if it ended now. */
export interface OpenReservation {
  readonly reservation: QuotaReservation;
  readonly record: UsageRecord;
  readonly ttlMs: number;
  /**
   * Null while the reservation runs. After that, Unix milliseconds at which the limiter asks the upstream and
   * writes the record.
   */
  readonly abandonAt: number | null;
}

/** Unix milliseconds at which a reservation expires, or the upstream of its request must be asked. */
export const dueAt = ({ reservation, abandonAt }: OpenReservation): number =>
  abandonAt ?? reservation.expiresAt;

/** The record is what gets billed if the Worker vanishes right after its reservation. */
export function openReservation(
  reservation: QuotaReservation,
  { requestId, tenantId, keyId, model, ttlMs, endUser }: AdmittedRequest,
  startedAt: number,
): OpenReservation {
  const record: UsageRecord = {
    requestId,
    tenantId,
    keyId,
    model,
    endUser: endUser?.hash ?? null,
    upstream: null,
    usage: NO_USAGE,
    cost: 0,
    priceVersion: priceOf(requestId)?.version ?? null,
    status: 'abandoned',
    errorCode: null,
    finishReasons: [],
    startedAt,
    latencyMs: 0,
    firstTokenMs: null,
  };
  return { reservation, record, ttlMs, abandonAt: null };
}
