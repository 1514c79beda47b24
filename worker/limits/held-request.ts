import type { Principal } from '@continuo/shared/tenant.ts';
import type { IsolateLimiters } from './isolate-limiter.ts';
import type { LimiterCaller } from './limiter-client.ts';
import type { RecentBlocks } from './recent-blocks.ts';

/** What a hold needs of its request. The Worker's context of a request has all of it. */
export interface HeldRequest extends LimiterCaller {
  readonly settings: { readonly RESERVATION_TTL_MS: number; readonly REQUEST_TIMEOUT_MS: number };
  /** Id of the key that a line of a batch runs with; null for requests of callers. */
  readonly batchKey: string | null;
  /** `endUser`: hash of the end user's name; null if the request has none. */
  readonly caller: { readonly endUser: string | null };
  /** `limits`: `x-ratelimit-*` headers; null if the limiter has failed: do not call it again. */
  readonly reply: { limits: Readonly<Record<string, string>> | null };
  readonly timings: {
    measure<T>(name: string, work: () => Promise<T>): Promise<T>;
    set(name: string, ms: number): void;
  };
  readonly limiters: IsolateLimiters;
  readonly recentBlocks: RecentBlocks;
  /** Returns the caller as the database has it now. */
  currentPrincipal(caller: Principal): Promise<Principal>;
}
