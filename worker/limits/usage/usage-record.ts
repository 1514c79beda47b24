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
  /** Hash of the end user's name; null = none. Absent in records of older limiters. */
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

export const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };

/** Returns what counts against limits. Cached prompt tokens count like all others; the price may be lower. */
export const spendOf = (price: Price | null, usage: Usage) => ({
  tokens: usage.promptTokens + usage.completionTokens,
  money: costOf(price, usage),
});
