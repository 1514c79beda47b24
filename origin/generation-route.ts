import { ApiError } from '../shared/errors.ts';
import { generationRequest } from '../shared/generation.ts';
import { parseBody } from './body.ts';
import { EventStream } from './event-stream.ts';
import type { Exchange, ServerContext } from './exchange.ts';
import { prepareGeneration } from './generate.ts';
import { GenerationMeter } from './generation-meter.ts';
import type { Loaded } from './service.ts';

/**
 * POST /generate: everything that can be wrong with the request is found, and its place in the queue taken, before the
 * 200; from then on the stream speaks. The caller's going away aborts at once, whatever stage it is in.
 */
export async function handleGenerate(exchange: Exchange, context: ServerContext): Promise<void> {
  await context.service.hold((loaded) => generate(exchange, context, loaded));
}

async function generate(
  exchange: Exchange,
  context: ServerContext,
  { model, engine }: Loaded,
): Promise<void> {
  const { response, receivedAt } = exchange;
  const request = parseBody(exchange.body, generationRequest);
  const engineId = context.newId();
  const { submission, preamble } = await prepareGeneration(request, {
    ...context,
    model,
    engineId,
    receivedAt,
  });
  if (response.destroyed) return;

  const stream = new EventStream(response, context.readerLimits);
  const meter = new GenerationMeter(context.metrics, context.now, receivedAt);
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  let inEngine = true;
  response.once('close', () => {
    if (inEngine && !stream.ended) engine.abort(engineId);
  });
  const admission = await engine.submit(submission, (events) => {
    meter.observe(events);
    stream.write(events);
  });
  if (!admission.admitted) {
    inEngine = false;
    throw overloaded(admission.retryAfterMs);
  }
  stream.open(preamble);
  await closed;
  if (!stream.ended) context.metrics.aborts.inc();
  context.log.info(
    {
      requestId: request.requestId,
      tenantId: request.tenantId,
      outcome: meter.outcome,
      ...meter.usage,
      ms: context.now() - receivedAt,
    },
    'generation',
  );
}

function overloaded(retryAfterMs: number): ApiError {
  const seconds = String(Math.max(1, Math.ceil(retryAfterMs / 1000)));
  const headers = { 'retry-after': seconds, 'retry-after-ms': String(Math.ceil(retryAfterMs)) };
  return new ApiError('server_is_overloaded', 'The server is overloaded; please try again later.', {
    headers,
  });
}
