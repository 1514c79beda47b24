import type { FinishReason, Usage } from '../shared/generation.ts';
import type { Principal } from '../shared/tenant.ts';
import type { RequestContext } from './context.ts';

/** What a request may cost at most, estimated before it is tokenised. */
export interface Cost {
  readonly requests: 1;
  /** Estimated prompt tokens plus everything that may be generated. */
  readonly tokens: number;
  readonly promptTokens: number;
  readonly sequences: number;
  readonly model: string;
}

/** How a generation ended; told exactly once, whatever happened. */
export interface Outcome {
  /** `cancelled`: the client went away. `failed`: the upstream or we did. */
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly usage: Usage;
  /** Code of the error the caller saw; null for `completed` and `cancelled`. */
  readonly errorCode: string | null;
  readonly finishReasons: readonly FinishReason[];
  /** Name of the upstream that served it; null when none was reached. */
  readonly upstream: string | null;
  /** Unix milliseconds of the first generated token; null when there was none. */
  readonly firstTokenAt: number | null;
}

/** A reservation. Whoever holds it settles it exactly once. */
export interface Lease {
  /** Rate-limit headers for the answer. */
  readonly headers: Readonly<Record<string, string>>;
  settle(outcome: Outcome): Promise<void>;
}

/**
 * Reserves requests, tokens and concurrency together.
 * @throws ApiError 429
 */
export async function admit(_principal: Principal, _cost: Cost, _context: RequestContext): Promise<Lease> {
  return { headers: {}, settle: async () => {} };
}
