import type { FinishReason, Usage } from '@continuo/shared/generation.ts';
import { costOf, type Price } from './price.ts';

/** `abandoned`: the Worker vanished without settlement. It has the upstream's account or last renewal. */
type UsageStatus = 'completed' | 'failed' | 'cancelled' | 'abandoned';

/** Usage of one request. Written exactly once per admitted request. */
export interface UsageRecord {
  readonly requestId: string;
  readonly tenantId: string;
  readonly keyId: string;
  readonly model: string;
  /** Hash of the end user's name; null = none. Absent in records of version 0.2.0. */
  readonly endUser?: string | null;
  /** Name of the upstream; null if no upstream was reached. */
  readonly upstream: string | null;
  readonly usage: Usage;
  /** In micro-units of the currency. */
  readonly cost: number;
  /** Version of the price; null = no price. */
  readonly priceVersion: number | null;
  readonly status: UsageStatus;
  /** Code of the error that the caller saw; null for `completed` and `cancelled`. */
  readonly errorCode: string | null;
  readonly finishReasons: readonly FinishReason[];
  /** Unix milliseconds of the reservation. */
  readonly startedAt: number;
  readonly latencyMs: number;
  /** Milliseconds to the first generated token; null if there was none. */
  readonly firstTokenMs: number | null;
}

/** The fields of a stored record, in their order. A new one comes last: older rows lack it. */
const FIELDS = [
  'requestId',
  'tenantId',
  'keyId',
  'model',
  'endUser',
  'upstream',
  'cost',
  'priceVersion',
  'status',
  'errorCode',
  'finishReasons',
  'startedAt',
  'latencyMs',
  'firstTokenMs',
] as const satisfies readonly (keyof UsageRecord)[];

/** A record as JSON has it: names of fields would be most of it. */
export type StoredRecord = readonly [usage: readonly number[], ...values: unknown[]];

export const storedRecord = (record: UsageRecord): StoredRecord => {
  const { promptTokens, cachedTokens, completionTokens } = record.usage;
  return [[promptTokens, cachedTokens, completionTokens], ...FIELDS.map((name) => record[name])];
};

export function recordOf([usage, ...values]: StoredRecord): UsageRecord {
  const [promptTokens = 0, cachedTokens = 0, completionTokens = 0] = usage;
  const fields = Object.fromEntries(FIELDS.map((name, index) => [name, values[index]]));
  return { ...fields, usage: { promptTokens, cachedTokens, completionTokens } } as UsageRecord;
}

export const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };

/** Returns what counts against limits. Cached prompt tokens count like all others; the price may be lower. */
export const spendOf = (price: Price | null, usage: Usage) => ({
  tokens: usage.promptTokens + usage.completionTokens,
  money: costOf(price, usage),
});
