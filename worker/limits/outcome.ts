import type { Settlement } from './quota/protocol.ts';
import type { UsageRecord } from './usage/usage-record.ts';

/** How a generation ended. Reported exactly once. */
export interface Outcome extends Pick<UsageRecord, 'usage' | 'errorCode' | 'finishReasons' | 'upstream'> {
  /** `cancelled`: the client disconnected. `failed`: the upstream or the Worker failed. */
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Unix milliseconds of the first generated token; null if there was none. */
  readonly firstTokenAt: number | null;
  /** Longest wait of a prompt in the upstream's queue, in milliseconds. */
  readonly queueMs?: number;
  /** The upstream may have generated more than the Worker saw: the limiter asks it first. */
  readonly inquire?: boolean;
}

/** Returns what is billed for a request that began at `startedAt` and ended now. */
export function settlementOf(
  { firstTokenAt, finishReasons, queueMs: _, inquire: __, ...rest }: Outcome,
  endUser: string | null,
  { startedAt, now }: { readonly startedAt: number; readonly now: number },
): Settlement {
  return {
    ...rest,
    endUser,
    finishReasons: [...finishReasons],
    latencyMs: now - startedAt,
    firstTokenMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
  };
}
