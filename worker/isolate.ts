import { IsolateLimiters } from '@continuo/limits/isolate-limiter.ts';
import { RecentBlocks } from '@continuo/limits/recent-blocks.ts';
import { requestName } from '@continuo/limits/usage/reservation-id.ts';
import type { Backoff } from '@continuo/shared/retry.ts';
import { toHex } from '@continuo/shared/signing.ts';
import { currentPrincipal } from './auth/auth.ts';
import { provisionalDialect } from './dialects/dialect.ts';
import type { Env } from './env/env.ts';
import type { InnerRequestProps } from './env/replay-protocol.ts';
import { parseSettings } from './env/settings.ts';
import { bodyBudget } from './http/body-budget.ts';
import { freeWorkPace } from './http/free-work-pace.ts';
import type { Reply, RequestContext } from './http/request-context.ts';
import { incomingRequestId, traceparentOf } from './http/request-context.ts';
import { PriceList } from './prices/price-list.ts';
import { KeyDirectory } from './tenants/key-directory.ts';
import { RequestTimers } from './timers/request-timers.ts';
import { Timings } from './timers/timings.ts';
import { UpstreamDirectory } from './upstreams/upstream-directory.ts';

export const now = (): number => Date.now();

const POOL_BYTES = 2_048;

/** Returns a source of random hex. It draws many bytes at once: a draw takes longer than a slice. */
function hexSource(): (count: number) => string {
  let pool = '';
  let used = 0;
  return (count) => {
    if (used + 2 * count > pool.length) {
      pool = toHex(crypto.getRandomValues(new Uint8Array(Math.max(count, POOL_BYTES))));
      used = 0;
    }
    used += 2 * count;
    return pool.slice(used - 2 * count, used);
  };
}

export const backoff: Backoff = { random: Math.random, pause: (ms) => scheduler.wait(ms) };

/** The state that one isolate keeps between requests. No I/O objects: those belong to a request. */
export function createIsolate(env: Env) {
  const settings = parseSettings(env);
  const randomHex = hexSource();
  return {
    settings,
    randomHex,
    upstreams: new UpstreamDirectory(env, settings, now),
    keys: new KeyDirectory(now, {
      secret: settings.KEY_ID_SECRET ?? null,
      acceptUnchecked: settings.UNCHECKED_KEYS === 'accepted',
    }),
    prices: new PriceList(now),
    limiters: new IsolateLimiters(randomHex),
    recentBlocks: new RecentBlocks(now),
    backoff,
    // A single body of the largest size must fit.
    newBody: bodyBudget(Math.max(settings.MAX_HELD_BODY_BYTES, settings.MAX_BODY_BYTES)),
    freeWorkTurn: freeWorkPace(now, backoff.pause),
  };
}

export type Isolate = ReturnType<typeof createIsolate>;

/** Properties that objects add to the requests they send to their own Worker; empty for callers' requests. */
const innerProps = ({ props }: ExecutionContext): InnerRequestProps =>
  (props as InnerRequestProps | undefined) ?? {};

/** The response to a line of a batch begins when its status is known. */
const NEVER_MS = 2 ** 31 - 1;

/** Returns the context of a request. */
export function createContext(
  request: Request,
  env: Env,
  background: ExecutionContext,
  isolate: Isolate,
): RequestContext {
  const reply: Reply = {
    dialect: provisionalDialect(request),
    limits: {},
    ignoredKeywords: null,
    ignoredFields: [],
  };
  const { randomHex } = isolate;
  const { completion = randomHex(16), batchKey = null } = innerProps(background);
  const context: RequestContext = {
    // A spread after other fields, or a second one, would copy one field at a time.
    ...isolate,
    settings: batchKey === null ? isolate.settings : { ...isolate.settings, EARLY_ANSWER_MS: NEVER_MS },
    requestId: incomingRequestId(request) ?? requestName(now(), randomHex(10)),
    completionId: `cmpl-${completion}`,
    env,
    // Begins early, so that a read of the list does not delay the request.
    catalogue: isolate.upstreams.catalogue(env.DB, (work) => background.waitUntil(work)),
    batchKey,
    reply,
    caller: { principal: null, endUser: null },
    heldBody: isolate.newBody(),
    timings: new Timings(now),
    timers: new RequestTimers(now),
    traceparent: traceparentOf(request, randomHex),
    now,
    currentPrincipal: (caller) => currentPrincipal(caller, context),
    waitUntil: (work) => background.waitUntil(work),
  };
  return context;
}
