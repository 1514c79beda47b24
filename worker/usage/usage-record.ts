import type { FinishReason, Usage } from '../../shared/generation.ts';

/** `abandoned`: the Worker vanished without a word; the record holds what it had told until then. */
export type UsageStatus = 'completed' | 'failed' | 'cancelled' | 'abandoned';

/** What one request used. Written exactly once per admitted request. */
export interface UsageRecord {
  readonly requestId: string;
  readonly tenantId: string;
  readonly keyId: string;
  readonly model: string;
  /** Name of the upstream; null when none was reached. */
  readonly upstream: string | null;
  readonly usage: Usage;
  readonly status: UsageStatus;
  readonly errorCode: string | null;
  readonly finishReasons: readonly FinishReason[];
  /** Unix milliseconds of the reservation. */
  readonly startedAt: number;
  readonly latencyMs: number;
  /** Milliseconds to the first generated token; null when there was none. */
  readonly firstTokenMs: number | null;
}

export const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };

/** What counts against token limits: cached prompt tokens count like others. */
export const chargedTokens = (usage: Usage): number => usage.promptTokens + usage.completionTokens;
