import type { Env } from '../../../worker/env/env.ts';
import type { RegionSync } from '../../../worker/env/limiter-protocol.ts';
import type { InnerRequestProps } from '../../../worker/env/replay-protocol.ts';
import worker, { RegionLimiter as NearLimiter } from '../../../worker/index.ts';

/**
 * The Worker with a distant limiter: each call takes a round trip of this length. If LIMIT_REGIONS is set, the regions are
 * near and only they call the limiter. The header `x-colo` sets the region of a request from outside. GET /claims returns
 * how many requests the regions have passed on to the limiter.
 */
const ROUND_TRIP_MS = 100;

/** Regions run in the same isolate. */
let claims = 0;

type Limiters = Env['LIMITER'];
type Calls = Readonly<Record<string, (...values: readonly unknown[]) => Promise<unknown>>>;

function distant(limiters: Limiters): Limiters {
  const get: Limiters['get'] = (id) =>
    new Proxy(limiters.get(id), {
      get:
        (near, name: string) =>
        async (...values: readonly unknown[]) => {
          if (name === 'sync') claims += (values[0] as RegionSync).requests.length;
          await scheduler.wait(ROUND_TRIP_MS / 2);
          const answer = await (near as unknown as Calls)[name]!(...values);
          await scheduler.wait(ROUND_TRIP_MS / 2);
          return answer;
        },
    });
  return { idFromName: (name: string) => limiters.idFromName(name), get } as Limiters;
}

const far = (env: Env): Env => ({ ...env, LIMITER: distant(env.LIMITER) });

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname === '/claims') return Response.json(claims);
    const isOwn = (context.props as Partial<InnerRequestProps> | undefined)?.completion !== undefined;
    const colo = isOwn ? undefined : (request.headers.get('x-colo') ?? undefined);
    const located = new Request(request, { cf: { colo } as never }) as typeof request;
    return worker.fetch!(located, far(env), context);
  },
} satisfies ExportedHandler<Env>;

export class RegionLimiter extends NearLimiter {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, far(env));
  }
}

export { IdempotentAnswer, StreamTail, TenantLimiter } from '../../../worker/index.ts';
