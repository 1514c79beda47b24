import type { LimiterStorage, OutboxEntry } from '../limits/objects/limiter-storage.ts';
import { addToLedger, ledgerCursor } from './usage-ledger.ts';
import type { UsageRecord } from './usage-record.ts';

/** As many data points as the platform takes from one alarm; it throws at the next. */
const BATCH = 250;

/** The fine grain: one data point per request, for questions the daily sums cannot answer. Best effort. */
function writePoints(dataset: AnalyticsEngineDataset, entries: readonly OutboxEntry[]): void {
  try {
    for (const { record } of entries) writePoint(dataset, record);
  } catch {
    // What cannot be written there is in the ledger all the same.
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
    ],
  });
}

/**
 * Moves settled records from the limiter's outbox to the ledger. A record leaves the outbox only after the ledger's
 * own cursor says that it is there; until then the next call tries again.
 * @returns true when so many were moved that more may wait
 * @throws whatever the database throws; nothing is lost then
 */
export async function flushOutbox(
  storage: Pick<LimiterStorage, 'outbox' | 'dropOutboxTo'>,
  db: D1Database,
  dataset: AnalyticsEngineDataset | undefined,
): Promise<boolean> {
  const waiting = storage.outbox(BATCH);
  const tenantId = waiting[0]?.record.tenantId;
  if (tenantId === undefined) return false;
  const cursor = await ledgerCursor(db, tenantId);
  const written = waiting.filter(({ sequence }) => sequence <= cursor);
  if (dataset) writePoints(dataset, written);
  storage.dropOutboxTo(cursor);
  const batch = storage.outbox(BATCH);
  await addToLedger(db, tenantId, cursor, batch);
  return batch.length === BATCH;
}
