import type { Env } from '../../../worker/env.ts';
import worker, { TenantLimiter as Limiter } from '../../../worker/index.ts';

/** The Worker with a path of its own, `/restart/{tenant}`, at which the tenant's limiter loses its memory. */
export class TenantLimiter extends Limiter {
  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }
}

export default {
  async fetch(request, env, context) {
    const tenant = /^\/restart\/(.+)$/.exec(new URL(request.url).pathname)?.[1];
    if (tenant === undefined) return worker.fetch!(request, env, context);
    const limiters = env.LIMITER as unknown as DurableObjectNamespace<TenantLimiter>;
    await limiters
      .get(limiters.idFromName(tenant))
      .restart()
      .catch(() => {});
    return new Response();
  },
} satisfies ExportedHandler<Env>;

export { IdempotentAnswer, RegionLimiter, StreamTail } from '../../../worker/index.ts';
