import type { Env } from '../../../../worker/env/env.ts';
import worker from '../../../../worker/index.ts';

/** The Worker; GET /log returns the lines that it has logged so far. */
const lines: unknown[] = [];
console.log = (line: unknown) => void lines.push(line);
console.error = console.log;

export default {
  fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    return pathname === '/log' ? Response.json(lines) : worker.fetch!(request, env, context);
  },
} satisfies ExportedHandler<Env>;

export { IdempotentAnswer, StreamTail, TenantLimiter } from '../../../../worker/index.ts';
