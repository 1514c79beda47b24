import type { Env } from '../../../worker/env.ts';
import worker from '../../../worker/index.ts';

/** The Worker with limiters that are half the world away: every call to one takes a round trip of this length. */
const ROUND_TRIP_MS = 100;

type Limiters = Env['LIMITER'];
type Calls = Readonly<Record<string, (...values: readonly unknown[]) => Promise<unknown>>>;

function distant(limiters: Limiters): Limiters {
  const get: Limiters['get'] = (id) =>
    new Proxy(limiters.get(id), {
      get:
        (near, name: string) =>
        async (...values: readonly unknown[]) => {
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
    return worker.fetch!(request, { ...env, LIMITER: distant(env.LIMITER) }, context);
  },
} satisfies ExportedHandler<Env>;

export { IdempotentAnswer, StreamTail, TenantLimiter } from '../../../worker/index.ts';
