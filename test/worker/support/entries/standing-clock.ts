import type { Env } from '../../../../worker/env/env.ts';
import worker from '../../../../worker/index.ts';
import { turnClock } from './turned-clock.ts';

/** The Worker with a clock that tests turn. */
export default {
  fetch(request, env, context) {
    turnClock(request);
    return worker.fetch!(request, env, context);
  },
} satisfies ExportedHandler<Env>;

export { IdempotentAnswer, StreamTail, TenantLimiter } from '../../../../worker/index.ts';
