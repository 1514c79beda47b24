import { ApiError, errorFromWire, retryAfter } from '@continuo/shared/errors.ts';
import {
  type EventOf,
  type GenerationRequest,
  generationRequest,
  needsCompilation,
} from '@continuo/shared/generation.ts';
import { prepareGeneration } from '../request/prepare.ts';
import type { LoadedModel } from '../serving/load-model.ts';
import { parseBody } from './body.ts';
import { EventStream, startHeartbeat } from './event-stream.ts';
import { GenerationMeter } from './generation-meter.ts';
import { closeSignal, type ReceivedRequest, type ServerContext, unlessAborted } from './route.ts';

/**
 * POST /generate: validates, tokenises and enqueues the request, then answers 200 with its events. If the
 * connection closes, the generation is aborted at any stage.
 */
export async function handleGenerate(received: ReceivedRequest, context: ServerContext): Promise<void> {
  const request = parseBody(received.body, generationRequest, ['constraint']);
  await context.service.hold(request.model, (loaded) => generate(received, context, request, loaded));
}

async function generate(
  received: ReceivedRequest,
  context: ServerContext,
  request: GenerationRequest,
  { model, engine }: LoadedModel,
): Promise<void> {
  const { response, receivedAt } = received;
  const engineId = context.newId();
  const signal = closeSignal(response);
  const preparing = prepareGeneration(request, { ...context, model, engineId, receivedAt, signal });
  const prepared = await unlessAborted(preparing, signal);
  if (prepared === null || signal.aborted) return;
  const { submission, preamble, restore } = prepared;

  const meter = new GenerationMeter(context.metrics, context.now, {
    model: model.id,
    receivedAt,
    stream: request.stream,
  });
  const account = context.usageAccounts.open(request.account ?? engineId, model.id, receivedAt);
  const stream = new EventStream(response, context.readerLimits);
  meter.observe(preamble);
  account.observe(preamble);
  let ignored: readonly string[] = [];
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  const abort = () => {
    if (!stream.ended) engine.abort(engineId);
  };
  response.once('close', abort);
  try {
    const admission = await engine.submit(submission, (events, names) => {
      ignored = names ?? ignored;
      const restored = events.map(restore);
      meter.observe(restored);
      account.observe(restored);
      stream.write(restored);
    });
    if (!admission.admitted) throw notAdmitted(admission.retryAfterMs, engine.status.healthy);
    // Grammar and patterns are compiled or refused after the admission. An invalid one is a 400 however long
    // that takes.
    if (needsCompilation(submission)) await Promise.race([stream.first, closed]);
    if (stream.failure !== null) throw refusalBy(stream.failure);
  } catch (error) {
    response.off('close', abort);
    account.withdraw();
    throw error;
  }
  stream.open(preamble, ignored);
  const stopHeartbeat = startHeartbeat(stream, engine, context.heartbeatMs);
  await closed;
  stopHeartbeat();
  account.end();
  meter.end(stream.ended);
  const { requestId, tenantId } = request;
  const { outcome, usage } = meter;
  const endedAt = context.now();
  const ms = endedAt - receivedAt;
  context.log.info({ model: model.id, requestId, tenantId, outcome, ...usage, ms }, 'generation');
  const traceparent = received.request.headers.traceparent as string | undefined;
  const span = { traceparent, requestId, model: model.id, startedAt: receivedAt, endedAt, outcome, usage };
  context.traces?.record(span);
}

/** Milliseconds after which a request may be sent again that a busy compiler has refused. */
const COMPILER_RETRY_MS = 5000;

/** Maps a failure before the first event to an HTTP error. */
const refusalBy = (failure: EventOf<'error'>): ApiError =>
  failure.code === 'server_is_overloaded' ? notAdmitted(COMPILER_RETRY_MS, true) : errorFromWire(failure);

function notAdmitted(retryAfterMs: number, healthy: boolean): ApiError {
  const headers = retryAfter(retryAfterMs);
  return healthy
    ? new ApiError('server_is_overloaded', 'The server is overloaded; please try again later.', { headers })
    : new ApiError('model_loading', 'The model is being loaded again.', { headers });
}
