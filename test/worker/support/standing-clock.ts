import type { Env } from '../../../worker/env/env.ts';
import worker from '../../../worker/index.ts';

/** The Worker with a fixed clock that the header `x-now` sets (Unix milliseconds), also for its Durable Objects. */
const running = Date.now;
let standing: number | null = null;
Date.now = () => standing ?? running();

export default {
  fetch(request, env, context) {
    const now = request.headers.get('x-now');
    if (now !== null) standing = Number(now);
    return worker.fetch!(request, env, context);
  },
} satisfies ExportedHandler<Env>;

export { IdempotentAnswer, StreamTail, TenantLimiter } from '../../../worker/index.ts';
