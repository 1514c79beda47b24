import { ApiError, toApiError } from '@continuo/shared/errors.ts';
import {
  type EventOf,
  type GenerationEvent,
  type GenerationRequest,
  type OriginModel,
  PROTOCOL_VERSION,
  type WirePrompt,
} from '@continuo/shared/generation.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import type { CompletionCall } from '../dialects/completion-call.ts';
import { withOriginalFieldNames } from '../dialects/original-field-names.ts';
import { logUpstreamFailure } from '../http/access-log.ts';
import type { RequestContext } from '../http/request-context.ts';
import { tokensWith } from '../limits/request-cost.ts';
import type { Outcome, Reservation } from '../limits/reservation.ts';
import type { RoutedUpstream } from '../upstreams/routed-upstream.ts';
import { NO_USAGE } from '../usage/usage-record.ts';
import type { Envelope } from './format/completion-json.ts';
import { RunningGeneration } from './running-generation.ts';

type Batch = readonly GenerationEvent[];

/** A generation whose first events have arrived. */
export interface StartedGeneration {
  readonly generation: RunningGeneration;
  readonly first: Batch;
  readonly call: CompletionCall;
  readonly envelope: Envelope;
}

/** A generation that has been sent to an upstream. */
export interface StartingGeneration {
  /** @throws ApiError if it fails before its first events */
  readonly started: Promise<StartedGeneration>;
  /** Resolves when the upstream has checked what takes long to check. @throws ApiError if it has refused the request */
  checked(): Promise<unknown>;
  /** The client has disconnected: ends the upstream's work and settles what was generated. */
  cancel(): void;
}

/** Returns the `done` event if it is the last one. */
export const doneOf = (events: Batch): EventOf<'done'> | undefined => {
  const last = events.at(-1);
  return last?.type === 'done' ? last : undefined;
};

/** A request that has passed admission. */
export interface AdmittedRequest {
  readonly request: Request;
  readonly context: RequestContext;
  readonly principal: Principal;
  readonly model: OriginModel;
  readonly call: CompletionCall;
  readonly reservation: Reservation;
}

/** Milliseconds that the origin has to report its own timeout before the Worker ends the request. */
const GRACE_MS = 5_000;

/** Starts the generation, which settles the reservation. If the generation does not start, this function settles it. */
export function startGeneration({
  request,
  context,
  principal,
  model,
  call,
  reservation,
}: AdmittedRequest): StartingGeneration {
  const { settings, now, timers } = context;
  const envelope = envelopeOf(call, model, context);
  const abort = new AbortController();
  let generation: RunningGeneration | null = null;
  const clearDeadline = timers.after(settings.REQUEST_TIMEOUT_MS + GRACE_MS, () => {
    const late = new ApiError('upstream_timeout', 'The completion did not finish in time.');
    abort.abort(late);
    // If the client has stopped reading, no read is pending that the signal could end.
    generation?.fail(late);
  });
  let departed = false;
  let acceptedTokens = 0;
  const accepted = Promise.withResolvers<void>();
  const cancel = (): void => {
    departed = true;
    if (generation) generation.cancel();
    else abort.abort();
  };
  const settle: Reservation['settle'] = (outcome) => {
    clearDeadline();
    // The platform keeps the listeners of a signal in memory until a full garbage collection.
    request.signal.removeEventListener('abort', cancel);
    return reservation.settle(outcome);
  };
  // The client may have disconnected during admission.
  if (request.signal.aborted) cancel();
  else request.signal.addEventListener('abort', cancel);
  let upstream: RoutedUpstream | null = null;
  const start = async (): Promise<StartedGeneration> => {
    upstream = context.catalogue.upstreamFor(model, {
      tenantId: principal.tenant.id,
      prompt: promptStart(call.generation),
    });
    const batches = await upstream.generate(generationRequest(call, model, principal, context, reservation), {
      signal: abort.signal,
      traceparent: context.traceparent,
      after: timers.after,
      extra: call.extra,
      tokensAsIds: call.answer.tokensAsIds,
      shown: call.answer,
      endUser: call.endUser,
      onAccepted: (promptTokens) => {
        acceptedTokens = promptTokens;
        accepted.resolve();
      },
      report: (failure) => logUpstreamFailure(failure, context),
    });
    const { waitUntil } = context;
    const options = {
      reservation: { ...reservation, settle },
      upstream: upstream.name,
      abort,
      onPromptTokens: (tokens: readonly number[]) => reservation.raise(tokensWith(tokens, call, model)),
      now,
      waitUntil,
    };
    generation = new RunningGeneration(batches, options);
    return { generation, first: await generation.next(), call, envelope };
  };
  const refuse = (thrown: unknown): never => {
    // If the deadline aborted the request, its reason is the better error.
    const { reason } = abort.signal;
    const cause = reason instanceof ApiError ? reason : thrown;
    const error = toApiError(cause);
    if (generation) generation.fail(error);
    else if (departed) context.waitUntil(settle(departedEarly(acceptedTokens, upstream)));
    else
      context.waitUntil(settle({ ...NOT_STARTED, errorCode: error.code, upstream: upstream?.name ?? null }));
    throw cause instanceof ApiError ? withOriginalFieldNames(cause, call) : cause;
  };
  const started = start().catch(refuse);
  const checked = async () => isCheckedLate(call) && Promise.race([started, accepted.promise]);
  return { started, checked, cancel };
}

/** The origin checks constraints and images before its first event, and may take seconds. It checks all else at once. */
const isCheckedLate = ({ generation: { constraint, images = [] } }: CompletionCall): boolean =>
  constraint !== null || images.length > 0;

/** Returns what begins the prompt, for the choice of an upstream that has it in its cache. Files precede an infill. */
const promptStart = ({ prompts, context, infill }: CompletionCall['generation']): WirePrompt | null =>
  context?.prompt ?? infill?.files[0]?.text ?? prompts[0] ?? null;

const NOT_STARTED: Outcome = {
  status: 'failed',
  usage: NO_USAGE,
  errorCode: null,
  finishReasons: [],
  upstream: null,
  firstTokenAt: null,
};

/**
 * Returns the outcome of a request whose client disconnected before its first event. The upstream may have computed part
 * of the prompt: its usage account tells, or `promptTokens` if it accepted the request and keeps no accounts.
 */
const departedEarly = (promptTokens: number, upstream: RoutedUpstream | null): Outcome => ({
  ...NOT_STARTED,
  status: 'cancelled',
  usage: { ...NO_USAGE, promptTokens },
  upstream: upstream?.name ?? null,
  inquire: upstream !== null,
});

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

function envelopeOf({ answer }: CompletionCall, model: OriginModel, context: RequestContext): Envelope {
  return {
    id: context.completionId,
    created: Math.floor(context.now() / 1_000),
    model: answer.model,
    fingerprint: fingerprintOf(model),
  };
}

/** FNV-1a over the id and time of a model: the same fingerprint and seed give the same text. */
function fingerprintOf({ id, created }: OriginModel): string {
  let hash = 0x811c9dc5;
  for (const unit of `${id}@${created}`) hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 0x01000193);
  return `fp_${(hash >>> 0).toString(16).padStart(8, '0')}`;
}
