import type { Env } from '../../../worker/env.ts';
import worker, { IdempotentAnswer as Answer, TenantLimiter as Limiter } from '../../../worker/index.ts';

export class TenantLimiter extends Limiter {
  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }
}

export class IdempotentAnswer extends Answer {
  async restart(): Promise<void> {
    this.ctx.abort('restarted');
  }
}

/** The object that a path names: `/restart/limiter/{tenant}` or `/restart/answer/{tenant}/{idempotency key}`. */
function named(path: string, { LIMITER, ANSWERS }: Env): { restart(): Promise<void> } | null {
  const [, kind, tenant, key] = /^\/restart\/(limiter|answer)\/(\w+)(?:\/(\w+))?$/.exec(path) ?? [];
  if (kind === 'limiter') {
    const limiters = LIMITER as unknown as DurableObjectNamespace<TenantLimiter>;
    return limiters.get(limiters.idFromName(tenant!));
  }
  if (kind !== 'answer') return null;
  const answers = ANSWERS as unknown as DurableObjectNamespace<IdempotentAnswer>;
  return answers.get(answers.idFromName(`${tenant}\n${key}`));
}

/** The Worker with paths of its own, at which an object loses its memory. */
export default {
  async fetch(request, env, context) {
    const object = named(new URL(request.url).pathname, env);
    if (object === null) return worker.fetch!(request, env, context);
    await object.restart().catch(() => {});
    return new Response();
  },
} satisfies ExportedHandler<Env>;

export { RegionLimiter, StreamTail } from '../../../worker/index.ts';
