import type { UsageRecord } from '../../../../worker/limits/usage/usage-record.ts';
import type { UsageQuestion } from '../../../../worker/limits/usage/usage-sums.ts';

export const recordOf = (fields: Partial<UsageRecord>): UsageRecord => ({
  requestId: 'isolate.0.1..r',
  tenantId: 'acme',
  keyId: 'key',
  model: 'tiny',
  endUser: null,
  upstream: null,
  errorCode: null,
  usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0 },
  status: 'completed',
  cost: 0,
  priceVersion: null,
  finishReasons: [],
  startedAt: Date.UTC(2026, 0, 1),
  latencyMs: 1,
  firstTokenMs: null,
  ...fields,
});

/** A question about everything. */
export const EVERYTHING: UsageQuestion = {
  from: '2000-01-01',
  to: '2099-12-31',
  keyId: null,
  model: null,
  endUser: null,
  groups: ['day'],
  after: [],
  limit: 10_000,
};
