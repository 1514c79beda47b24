import type { IsolateLimiters } from '@continuo/limits/isolate-limiter.ts';
import type { RecentBlocks } from '@continuo/limits/recent-blocks.ts';
import type { Backoff } from '@continuo/shared/retry.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Env } from '../env/env.ts';
import type { Settings } from '../env/settings.ts';
import type { PriceList } from '../prices/price-list.ts';
import type { KeyDirectory } from '../tenants/key-directory.ts';
import type { RequestTimers } from '../timers/request-timers.ts';
import type { Timings } from '../timers/timings.ts';
import type { Catalogue } from '../upstreams/pool.ts';
import type { UpstreamDirectory } from '../upstreams/upstream-directory.ts';
import type { HeldBody } from './body-budget.ts';
import type { FreeWorkTurn } from './free-work-pace.ts';
import { REQUEST_ID_HEADER } from './headers.ts';

/** What earlier steps decide about the response. It applies to error responses as well. */
export interface Reply {
  /** Provisional until the caller is authenticated. */
  dialect: Dialect;
  /** `x-ratelimit-*` headers; empty until a limiter has answered; null if it failed: do not call it again. */
  limits: Readonly<Record<string, string>> | null;
  /** Value of `x-ignored-keywords`; null = no such header. */
  ignoredKeywords: string | null;
  /** Fields of the body that have no effect. */
  ignoredFields: readonly string[];
}

/** The caller, as far as the request has been processed, for the access log. */
interface CallerState {
  /** Null until the key has been checked. */
  principal: Principal | null;
  /** Hash of the end user's name; null if the request has no `user` field. */
  endUser: string | null;
}

/** Everything that belongs to one request. Handlers get time, randomness and background work only here. */
export interface RequestContext {
  readonly requestId: string;
  /** Id of the completion, if this request creates one. */
  readonly completionId: string;
  readonly env: Env;
  readonly settings: Settings;
  /** Id of the key that a line of a batch runs with; null for requests of callers. */
  readonly batchKey: string | null;
  readonly upstreams: UpstreamDirectory;
  /** The upstreams of this request, also if the list changes while it runs. Never rejects. */
  readonly catalogue: Promise<Catalogue>;
  readonly keys: KeyDirectory;
  readonly prices: PriceList;
  readonly limiters: IsolateLimiters;
  readonly recentBlocks: RecentBlocks;
  readonly backoff: Backoff;
  readonly reply: Reply;
  readonly caller: CallerState;
  /** The bytes of its body, until its response starts. */
  readonly heldBody: HeldBody;
  readonly freeWorkTurn: FreeWorkTurn;
  readonly timings: Timings;
  readonly timers: RequestTimers;
  /** W3C trace context of this request; the Worker sends it to the upstream. */
  readonly traceparent: string;
  /** Returns the caller as the database has it now: limits and keys may change while it runs. */
  currentPrincipal(caller: Principal): Promise<Principal>;
  /** Unix milliseconds. */
  now(): number;
  /** Returns `count` random bytes as lower-case hex. */
  randomHex(count: number): string;
  /** Keeps work running after the response is sent or the client has disconnected. */
  waitUntil(work: Promise<unknown>): void;
}

/** Returns the caller's own request id if it is safe to log and to send on; otherwise null. */
export function incomingRequestId(request: Request): string | null {
  const id = request.headers.get(REQUEST_ID_HEADER);
  return id !== null && /^[\w.:-]{1,128}$/.test(id) ? id : null;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Returns the caller's W3C traceparent unchanged, or a new, unsampled one. The Worker sends it to the
 * upstream, so one id finds a request in every log.
 */
export function traceparentOf(request: Request, randomHex: (bytes: number) => string): string {
  const given = request.headers.get('traceparent')?.trim() ?? '';
  return TRACEPARENT.test(given) ? given : `00-${randomHex(16)}-${randomHex(8)}-00`;
}
