import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, isErrorCode, retryAfter, toApiError } from '../shared/errors.ts';
import { type GenerationRequest, generationRequest } from '../shared/generation.ts';
import { parseBody } from './body.ts';
import { EventStream } from './event-stream.ts';
import { type Exchange, leaving, type ServerContext, unlessLeft } from './exchange.ts';
import { prepareGeneration } from './generate.ts';
import { GenerationMeter } from './generation-meter.ts';
import { beatWhileWorking } from './heartbeat.ts';
import type { Loaded } from './service.ts';

/**
 * POST /generate: everything that can be wrong with the request is found, and its place in the queue taken, before the
 * 200; from then on the stream speaks. The caller's going away aborts at once, whatever stage it is in.
 */
export async function handleGenerate(exchange: Exchange, context: ServerContext): Promise<void> {
  const request = parseBody(exchange.body, generationRequest);
  await context.service.hold(request.model, (loaded) => generate(exchange, context, request, loaded));
}

async function generate(
  exchange: Exchange,
  context: ServerContext,
  request: GenerationRequest,
  { model, engine }: Loaded,
): Promise<void> {
  const { response, receivedAt } = exchange;
  const engineId = context.newId();
  const signal = leaving(response);
  const preparing = prepareGeneration(request, { ...context, model, engineId, receivedAt, signal });
  const prepared = await unlessLeft(preparing, signal);
  if (prepared === null || signal.aborted) return;
  const { submission, preamble, shown } = prepared;

  const stream = new EventStream(response, context.readerLimits);
  const meter = new GenerationMeter(context.metrics, context.now, {
    model: model.id,
    receivedAt,
    stream: request.stream,
  });
  const account = request.account === undefined ? null : context.recentUsage.begin(request.account);
  meter.observe(preamble);
  account?.observe(preamble);
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  const abort = () => {
    if (!stream.ended) engine.abort(engineId);
  };
  response.once('close', abort);
  try {
    const admission = await engine.submit(submission, (events) => {
      meter.observe(events);
      account?.observe(events);
      stream.write(events.map(shown));
    });
    if (!admission.admitted) throw notAdmitted(admission.retryAfterMs, engine.status.healthy);
    if (submission.constraint !== null) await untilCompiled(stream, closed);
  } catch (error) {
    response.off('close', abort);
    account?.withdraw();
    throw error;
  }
  stream.open(preamble);
  const rest = beatWhileWorking(stream, engine, context.heartbeatMs);
  await closed;
  rest();
  account?.end();
  meter.streamed(stream.ended);
  const { requestId, tenantId } = request;
  const ms = context.now() - receivedAt;
  context.log.info(
    { model: model.id, requestId, tenantId, outcome: meter.outcome, ...meter.usage, ms },
    'generation',
  );
}

/** Longer than a grammar may take to compile; a request that waits for a slot is accepted after this. */
const COMPILED_WITHIN_MS = 5000;

/**
 * A grammar is compiled after its request was admitted; what is wrong with it is still the caller's 400.
 * @throws ApiError the error that came as the first event
 */
async function untilCompiled(stream: EventStream, closed: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const patience = sleep(COMPILED_WITHIN_MS, null, { signal: timer.signal }).catch(() => null);
  const first = await Promise.race([stream.first, closed.then(() => null), patience]);
  timer.abort();
  if (first?.type !== 'error') return;
  const { code, message, param } = first;
  if (code === 'server_is_overloaded') throw notAdmitted(COMPILED_WITHIN_MS, true);
  throw isErrorCode(code) ? new ApiError(code, message, { param }) : toApiError(first);
}

function notAdmitted(retryAfterMs: number, healthy: boolean): ApiError {
  const headers = retryAfter(retryAfterMs);
  return healthy
    ? new ApiError('server_is_overloaded', 'The server is overloaded; please try again later.', { headers })
    : new ApiError('model_loading', 'The model is being loaded again.', { headers });
}
