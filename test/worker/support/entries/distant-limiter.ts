import type { Env } from '../../../../worker/env/env.ts';
import { isolateOf } from '../isolates.ts';
import { turnClock } from './turned-clock.ts';

/**
 * The Worker with a distant limiter: each call takes a round trip of this length. The header `x-isolate`
 * selects one of several isolates. GET /calls returns how many calls the limiters have got so far, and how
 * many of them a request has waited for. Tests may turn its clock.
 */
const ROUND_TRIP_MS = 100;

const calls = { all: 0, waitedFor: 0 };

type Limiters = Env['LIMITER'];
type Calls = Readonly<Record<string, (...values: readonly unknown[]) => Promise<unknown>>>;

function distant(limiters: Limiters): Limiters {
  const get: Limiters['get'] = (id) =>
    new Proxy(limiters.get(id), {
      get:
        (near, name: string) =>
        async (...values: readonly unknown[]) => {
          calls.all += 1;
          if ((values[0] as { reservation?: unknown } | null)?.reservation) calls.waitedFor += 1;
          await scheduler.wait(ROUND_TRIP_MS / 2);
          const answer = await (near as unknown as Calls)[name]!(...values);
          await scheduler.wait(ROUND_TRIP_MS / 2);
          return answer;
        },
    });
  return { idFromName: (name: string) => limiters.idFromName(name), get } as Limiters;
}

export default {
  fetch(request, env, context) {
    turnClock(request);
    if (new URL(request.url).pathname === '/calls') return Response.json(calls);
    return isolateOf(request).fetch!(request, { ...env, LIMITER: distant(env.LIMITER) }, context);
  },
} satisfies ExportedHandler<Env>;

export { IdempotentAnswer, StreamTail, TenantLimiter } from '../../../../worker/index.ts';
