import { NO_USAGE, type UsageRecord } from '../../usage/usage-record.ts';
import type { ReservationRequest } from '../protocol.ts';

/** What is written if the Worker vanishes right after its reservation. */
export function firstRecord(request: ReservationRequest, now: number): UsageRecord {
  return {
    requestId: request.requestId,
    tenantId: request.tenantId,
    keyId: request.keyId,
    model: request.model,
    upstream: null,
    usage: NO_USAGE,
    status: 'abandoned',
    errorCode: null,
    finishReasons: [],
    startedAt: now,
    latencyMs: 0,
    firstTokenMs: null,
  };
}
