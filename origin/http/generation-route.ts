import { setTimeout as sleep } from 'node:timers/promises';
import { errorOfEvent } from '../../shared/answer/error-answer.ts';
import { ApiError, retryAfter } from '../../shared/errors.ts';
import { type EventOf, type GenerationRequest, generationRequest } from '../../shared/generation.ts';
import { prepareGeneration } from '../request/prepare.ts';
import type { LoadedModel } from '../serving/loaded-model.ts';
import { parseBody } from './body.ts';
import { EventStream } from './event-stream.ts';
import { type Exchange, leaving, type ServerContext, unlessLeft } from './exchange.ts';
import { GenerationMeter } from './generation-meter.ts';
import { beatWhileWorking } from './heartbeat.ts';
import { NDJSON, written } from './notation.ts';

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
  { model, engine }: LoadedModel,
): Promise<void> {
  const { response, receivedAt } = exchange;
  const engineId = context.newId();
  const signal = leaving(response);
  const preparing = prepareGeneration(request, { ...context, model, engineId, receivedAt, signal });
  const prepared = await unlessLeft(preparing, signal);
  if (prepared === null || signal.aborted) return;
  const { submission, preamble, restore } = prepared;

  const meter = new GenerationMeter(context.metrics, context.now, {
    model: model.id,
    receivedAt,
    stream: request.stream,
  });
  const account = context.usageAccounts.open(request.account ?? engineId, receivedAt);
  const { now } = context;
  const form = request.written;
  const notation = form ? written({ request, form, account: account.snapshot, now }) : NDJSON;
  const stream = new EventStream(response, notation, context.readerLimits);
  meter.observe(preamble);
  account.observe(preamble);
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  const abort = () => {
    if (!stream.ended) engine.abort(engineId);
  };
  response.once('close', abort);
  try {
    const admission = await engine.submit(submission, (events) => {
      meter.observe(events);
      account.observe(events);
      stream.write(events.map(restore));
    });
    if (!admission.admitted) throw notAdmitted(admission.retryAfterMs, engine.status.healthy);
    if (submission.constraint !== null) await untilCompiled(stream, closed);
    if (stream.failure !== null) throw refusalBy(stream.failure);
  } catch (error) {
    response.off('close', abort);
    account.withdraw();
    throw error;
  }
  stream.open(preamble);
  // What shows to a caller is due behind a silence that lasted from one beat to the next.
  const beatMs = form ? Math.min(context.heartbeatMs, form.keepAliveMs / 2) : context.heartbeatMs;
  const rest = beatWhileWorking(stream, engine, beatMs);
  await closed;
  rest();
  account.end();
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

/** Waits for a grammar, which is compiled after its request was admitted: what is wrong with it is still the caller's 400. */
async function untilCompiled(stream: EventStream, closed: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  const patience = sleep(COMPILED_WITHIN_MS, null, { signal: timer.signal }).catch(() => null);
  await Promise.race([stream.first, closed, patience]);
  timer.abort();
}

/** What comes to nothing before it has begun is refused. */
const refusalBy = (failure: EventOf<'error'>): ApiError =>
  failure.code === 'server_is_overloaded' ? notAdmitted(COMPILED_WITHIN_MS, true) : errorOfEvent(failure);

function notAdmitted(retryAfterMs: number, healthy: boolean): ApiError {
  const headers = retryAfter(retryAfterMs);
  return healthy
    ? new ApiError('server_is_overloaded', 'The server is overloaded; please try again later.', { headers })
    : new ApiError('model_loading', 'The model is being loaded again.', { headers });
}
