import type { Principal } from '../shared/tenant.ts';
import type { Dialect } from './dialects/dialect.ts';
import type { Env, Settings } from './env.ts';
import type { EndingQueue } from './limits/settlement-queue.ts';
import type { KeyDirectory } from './tenants/key-directory.ts';
import type { RequestTimers } from './timers/request-timers.ts';
import type { Timings } from './timers/timings.ts';
import type { Catalogue } from './upstreams/pool.ts';

/** What is decided about the answer while the request is handled, and must hold for error answers too. */
export interface Answer {
  /** Whose habits the answer follows; known fully once the caller is. */
  dialect: Dialect;
  /** Headers that tell how the caller's limits stand; empty until the limiter has said it. */
  limits: Readonly<Record<string, string>>;
}

/** Who is asking, as far as it is known by now; for the log. */
export interface Caller {
  /** Known once the key has been checked. */
  principal: Principal | null;
  /** Stands for the end user whom the tenant named, and is nobody's name. */
  endUser: string | null;
}

/** Everything around one request. Handlers take time, randomness and background work from here only. */
export interface RequestContext {
  readonly requestId: string;
  /** Id of the completion, should this request make one. */
  readonly completionId: string;
  readonly env: Env;
  readonly settings: Settings;
  readonly catalogue: Catalogue;
  readonly keys: KeyDirectory;
  readonly endings: EndingQueue;
  readonly answer: Answer;
  readonly caller: Caller;
  /** Where limits are decided for this caller; null = at the tenant's home. */
  readonly region: string | null;
  readonly timings: Timings;
  readonly timers: RequestTimers;
  /** W3C trace context of this request, to be passed on. */
  readonly traceparent: string;
  /** The OpenAPI document of all routes, built at the first call. */
  readonly openApi: () => unknown;
  /** Unix milliseconds. */
  now(): number;
  /** `count` random bytes as lower-case hex. */
  randomHex(count: number): string;
  /** Lets work go on after the answer, and after the client has gone. */
  waitUntil(work: Promise<unknown>): void;
}
