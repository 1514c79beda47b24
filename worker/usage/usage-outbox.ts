import { addToLedger, ledgerCursor, type NumberedRecord } from './usage-ledger.ts';
import type { UsageRecord } from './usage-record.ts';

/** The platform accepts at most 250 data points per alarm. */
const BATCH = 250;

/** The limiter's stored usage records that are not in the ledger yet. */
interface UsageOutbox {
  outbox(limit: number): NumberedRecord[];
  dropOutboxTo(sequence: number): void;
}

/** Writes one data point per request, for questions that the daily sums cannot answer. Best effort. */
function writePoints(dataset: AnalyticsEngineDataset, entries: readonly NumberedRecord[]): void {
  try {
    for (const { record } of entries) writePoint(dataset, record);
  } catch {
    // The ledger has the records in any case.
  }
}

function writePoint(dataset: AnalyticsEngineDataset, record: UsageRecord): void {
  const { usage } = record;
  dataset.writeDataPoint({
    indexes: [record.tenantId],
    blobs: [
      record.requestId,
      record.keyId,
      record.model,
      record.upstream ?? '',
      record.status,
      record.errorCode ?? '',
      record.finishReasons.join(','),
    ],
    doubles: [
      usage.promptTokens,
      usage.cachedTokens,
      usage.completionTokens,
      record.latencyMs,
      record.firstTokenMs ?? -1,
      record.startedAt,
      record.cost ?? 0,
    ],
  });
}

/**
 * Moves usage records from the limiter's outbox to the ledger. A record leaves the outbox only when the
 * ledger's cursor confirms it. Until then, every call tries again.
 * @returns true if the batch was full, so that more records may wait
 * @throws what the database throws; no record is lost then
 */
export async function flushOutbox(
  storage: UsageOutbox,
  db: D1Database,
  dataset: AnalyticsEngineDataset | undefined,
  keepRequests: boolean,
): Promise<boolean> {
  const waiting = storage.outbox(BATCH);
  const tenantId = waiting[0]?.record.tenantId;
  if (tenantId === undefined) return false;
  const cursor = await ledgerCursor(db, tenantId);
  const written = waiting.filter(({ sequence }) => sequence <= cursor);
  if (dataset) writePoints(dataset, written);
  storage.dropOutboxTo(cursor);
  const batch = storage.outbox(BATCH);
  await addToLedger(db, tenantId, cursor, batch, keepRequests);
  return batch.length === BATCH;
}
