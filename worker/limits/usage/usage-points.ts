import type { UsageRecord } from './usage-record.ts';

/** Writes one data point per request, for questions that the daily sums cannot answer. Best effort. */
export function writePoints(dataset: AnalyticsEngineDataset, records: readonly UsageRecord[]): void {
  try {
    for (const record of records) writePoint(dataset, record);
  } catch {
    // The platform takes 250 per call. The ledger has the records in any case.
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
      record.cost,
    ],
  });
}
