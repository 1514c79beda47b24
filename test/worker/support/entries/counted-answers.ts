import type { Env } from '../../../../worker/env/env.ts';
import worker from '../../../../worker/index.ts';

/** The Worker with a data set that `GET /points` reads and empties. */
let points: AnalyticsEngineDataPoint[] = [];
const REQUESTS = { writeDataPoint: (point: AnalyticsEngineDataPoint) => void points.push(point) };

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname !== '/points')
      return worker.fetch!(request, { ...env, REQUESTS } as Env, context);
    const read = points;
    points = [];
    return Response.json(read);
  },
} satisfies ExportedHandler<Env>;

export { BatchRun, IdempotentAnswer, StreamTail, TenantLimiter } from '../../../../worker/index.ts';
