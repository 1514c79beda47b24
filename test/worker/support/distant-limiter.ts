import type { Env } from '../../../worker/env.ts';
import worker, { RegionLimiter as NearLimiter } from '../../../worker/index.ts';
import type { RegionSync } from '../../../worker/limits/protocol.ts';
import type { InnerRequestProps } from '../../../worker/replay/protocol.ts';

/**
 * The Worker with limiters that are half the world away: every call to one takes a round trip of this length. Where
 * LIMIT_REGIONS is set, regions are near and it is they who call; the header `x-colo` says in which one a request is,
 * unless the Worker itself makes it: of such a one the platform tells no place. GET /claims tells how many requests
 * regions have asked home to decide.
 */
const ROUND_TRIP_MS = 100;

/** Regions live in the same isolate. */
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
