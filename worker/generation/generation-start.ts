import { answerFormOf, type Envelope } from '../../shared/answer/answer-form.ts';
import { ApiError, toApiError } from '../../shared/errors.ts';
import {
  type GenerationRequest,
  type OriginModel,
  PROTOCOL_VERSION,
  type WrittenForm,
} from '../../shared/generation.ts';
import type { Principal } from '../../shared/tenant.ts';
import type { RequestContext } from '../context.ts';
import { inCallersWords } from '../dialects/callers-words.ts';
import type { CompletionCall } from '../dialects/completion-call.ts';
import type { Outcome, Reservation } from '../limits/admission.ts';
import type { RoutedUpstream } from '../upstreams/routed-upstream.ts';
import type { Upstream } from '../upstreams/upstream.ts';
import { NO_USAGE } from '../usage/usage-record.ts';
import { PassThrough } from './pass-through.ts';
import type { Started } from './relay.ts';
import { Run } from './run.ts';

/** A request that may run now. */
export interface Admitted {
  readonly request: Request;
  readonly context: RequestContext;
  readonly principal: Principal;
  readonly model: OriginModel;
  readonly call: CompletionCall;
  readonly reservation: Reservation;
}

/** Time the origin has to report its own time-out before we give up on it. */
const GRACE_MS = 5_000;

/**
 * Starts the generation and waits until the upstream has accepted it, so that whatever fails before is an HTTP status.
 * From here on the reservation is settled by the run or the pass-through, or right here when none comes to be.
 */
export async function startGeneration({
  request,
  context,
  principal,
  model,
  call,
  reservation,
}: Admitted): Promise<Started | PassThrough> {
  const { settings, now, timers } = context;
  const envelope = envelopeOf(call, model, context);
  const abort = new AbortController();
  let run: Run | PassThrough | null = null;
  const inTime = timers.after(settings.REQUEST_TIMEOUT_MS + GRACE_MS, () => {
    const late = new ApiError('upstream_timeout', 'The completion did not finish in time.');
    abort.abort(late);
    // A client that has stopped reading asks for no more events, and so would never learn of it.
    run?.fail(late);
  });
  const leave = (): void => {
    if (run) run.cancel();
    else abort.abort();
  };
  const settle: Reservation['settle'] = (outcome) => {
    inTime();
    // The platform's signals keep their listeners, and all that those refer to, until a full collection of garbage.
    request.signal.removeEventListener('abort', leave);
    return reservation.settle(outcome);
  };
  // The client may have gone while the request was being admitted; no event tells of that any more.
  if (request.signal.aborted) leave();
  else request.signal.addEventListener('abort', leave);
  let upstream: RoutedUpstream | null = null;
  try {
    upstream = context.catalogue.upstreamFor(model, {
      tenantId: principal.tenant.id,
      prompt: call.generation.prompts[0] ?? null,
    });
    const written = call.answer.stream ? { written: writtenForm(call, envelope, context) } : {};
    const asked = { ...generationRequest(call, model, principal, context, reservation), ...written };
    const stream = await upstream.generate(asked, {
      signal: abort.signal,
      traceparent: context.traceparent,
      after: timers.after,
      extra: call.extra,
      tokensAsIds: call.answer.tokensAsIds,
    });
    const { waitUntil } = context;
    const options = {
      reservation: { ...reservation, settle },
      upstream: upstream.name,
      abort,
      now,
      waitUntil,
    };
    if ('body' in stream) {
      const { errorCode } = context.answer.dialect;
      run = new PassThrough(stream, { ...options, after: timers.after, errorCode });
      return run;
    }
    const events = new Run(stream, options);
    run = events;
    return { run: events, first: await events.next(), call, envelope };
  } catch (thrown) {
    // The deadline's own reason says more than the failure it caused.
    const { reason } = abort.signal;
    const cause = reason instanceof ApiError ? reason : thrown;
    const error = toApiError(cause);
    if (run) run.fail(error);
    else context.waitUntil(settle(nothingUsed(request.signal.aborted ? null : error, upstream)));
    throw cause instanceof ApiError ? inCallersWords(cause, call) : cause;
  }
}

/** The outcome of a request that no upstream took up; without an error the client had gone. */
function nothingUsed(error: ApiError | null, upstream: Upstream | null): Outcome {
  return {
    status: error === null ? 'cancelled' : 'failed',
    usage: NO_USAGE,
    errorCode: error?.code ?? null,
    finishReasons: [],
    upstream: upstream?.name ?? null,
    firstTokenAt: null,
    // Who asked may have left in the middle of the prompt.
    inquire: error === null && upstream !== null,
  };
}

function generationRequest(
  call: CompletionCall,
  model: OriginModel,
  { tenant }: Principal,
  { settings, requestId }: RequestContext,
  reservation: Reservation,
): GenerationRequest {
  return {
    version: PROTOCOL_VERSION,
    requestId,
    account: reservation.id,
    tenantId: tenant.id,
    weight: tenant.weight,
    model: model.id,
    deadlineMs: settings.REQUEST_TIMEOUT_MS,
    ...call.generation,
  };
}

const writtenForm = (call: CompletionCall, envelope: Envelope, context: RequestContext): WrittenForm => ({
  envelope,
  answer: answerFormOf(call.answer),
  errorCode: context.answer.dialect.errorCode,
  keepAliveMs: context.settings.KEEP_ALIVE_MS,
});

function envelopeOf({ answer }: CompletionCall, model: OriginModel, context: RequestContext): Envelope {
  return {
    id: context.completionId,
    created: Math.floor(context.now() / 1_000),
    model: answer.model,
    fingerprint: fingerprintOf(model),
  };
}

/** FNV-1a over what identifies a build of a model: equal fingerprint and seed promise equal text. */
function fingerprintOf({ id, created }: OriginModel): string {
  let hash = 0x811c9dc5;
  for (const unit of `${id}@${created}`) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193);
  return `fp_${(hash >>> 0).toString(16).padStart(8, '0')}`;
}
