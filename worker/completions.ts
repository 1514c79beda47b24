import { ApiError, toApiError } from '../shared/errors.ts';
import {
  type GenerationRequest,
  type OriginModel,
  PROTOCOL_VERSION,
  type WirePrompt,
} from '../shared/generation.ts';
import type { Principal } from '../shared/tenant.ts';
import { admit, type Cost, type Lease } from './admission.ts';
import { authenticate } from './auth.ts';
import { readJsonObject } from './body.ts';
import type { RequestContext } from './context.ts';
import type { CompletionCall } from './dialects/completion-call.ts';
import { chooseDialect } from './dialects/dialect.ts';
import type { Envelope } from './dialects/openai-completions.ts';
import { parseCompletion, type RequestBounds } from './dialects/request.ts';
import { answerPlain, answerStream, type Started } from './relay.ts';
import { Run } from './relay-run.ts';
import { checkCapabilities, resolveModel } from './served-model.ts';

/** POST /v1/completions: authenticate → parse → admit → generate → relay. */
export async function complete(request: Request, context: RequestContext): Promise<Response> {
  const principal = await authenticate(request, context, 'completions');
  context.answer.dialect = chooseDialect(request, principal.tenant);
  const body = await readJsonObject(request, context.settings);
  const model = await resolveModel(body.model, principal, context, request.signal);
  const call = parseCompletion(body, context.answer.dialect, boundsOf(principal, context));
  checkCapabilities(call, model);
  const lease = await admit(principal, costOf(call, model), context);
  for (const [name, value] of Object.entries(lease.headers)) context.answer.headers.set(name, value);
  const started = await start({ request, context, principal, model, call, lease });
  return call.answer.stream ? answerStream(started, context) : answerPlain(started);
}

interface Admitted {
  readonly request: Request;
  readonly context: RequestContext;
  readonly principal: Principal;
  readonly model: OriginModel;
  readonly call: CompletionCall;
  readonly lease: Lease;
}

const NO_USAGE = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };

/** Time the origin has to report its own time-out before we give up on it. */
const GRACE_MS = 5_000;

/**
 * Starts the generation and waits for its first events, so that whatever fails before them is an HTTP status. From here
 * on the lease is settled by the run, or right here when none comes to be.
 */
async function start({ request, context, principal, model, call, lease }: Admitted): Promise<Started> {
  const { settings, now } = context;
  const envelope = envelopeOf(call, model, context);
  const abort = new AbortController();
  const deadline = setTimeout(() => {
    abort.abort(new ApiError('upstream_timeout', 'The completion did not finish in time.'));
  }, settings.REQUEST_TIMEOUT_MS + GRACE_MS);
  const settle: Lease['settle'] = (outcome) => {
    clearTimeout(deadline);
    return lease.settle(outcome);
  };
  let run: Run | null = null;
  const leave = (): void => {
    if (run) run.cancel();
    else abort.abort();
  };
  // The client may have gone while the request was being admitted; no event tells of that any more.
  if (request.signal.aborted) leave();
  else request.signal.addEventListener('abort', leave);
  const upstream = context.catalogue.upstreamFor(model, {
    tenantId: principal.tenant.id,
    prompt: call.generation.prompts[0] ?? null,
  });
  try {
    const stream = await upstream.generate(generationRequest(call, model, principal, context), {
      signal: abort.signal,
      traceparent: request.headers.get('traceparent'),
      extra: call.extra,
    });
    const { waitUntil } = context;
    run = new Run(stream, { lease: { ...lease, settle }, upstream: upstream.name, abort, now, waitUntil });
    return { run, first: await run.next(), call, envelope };
  } catch (thrown) {
    // The deadline's own reason says more than the failure it caused.
    const { reason } = abort.signal;
    const error = toApiError(reason instanceof ApiError ? reason : thrown);
    if (run) run.fail(error);
    else {
      const status = request.signal.aborted ? 'cancelled' : 'failed';
      const outcome = {
        status,
        usage: NO_USAGE,
        finishReasons: [],
        upstream: upstream.name,
        firstTokenAt: null,
      } as const;
      context.waitUntil(settle({ ...outcome, errorCode: status === 'failed' ? error.code : null }));
    }
    throw error;
  }
}

function generationRequest(
  call: CompletionCall,
  model: OriginModel,
  { tenant }: Principal,
  { settings, requestId }: RequestContext,
): GenerationRequest {
  return {
    version: PROTOCOL_VERSION,
    requestId,
    tenantId: tenant.id,
    weight: tenant.weight,
    model: model.id,
    deadlineMs: settings.REQUEST_TIMEOUT_MS,
    ...call.generation,
  };
}

function envelopeOf({ answer }: CompletionCall, model: OriginModel, context: RequestContext): Envelope {
  return {
    id: `cmpl-${context.randomHex(16)}`,
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

/** The smaller of two bounds; null = no bound. */
const tighter = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? (left ?? right) : Math.min(left, right);

function boundsOf({ tenant, key }: Principal, { settings }: RequestContext): RequestBounds {
  const sequences = tighter(tenant.limits.maxSequences, key.limits.maxSequences);
  return {
    maxTokens: tighter(tenant.limits.maxTokens, key.limits.maxTokens),
    sequences: tighter(sequences, settings.MAX_SEQUENCES) ?? settings.MAX_SEQUENCES,
  };
}

/** Characters of text that make a token, roughly; corrected by the true count when the lease is settled. */
const CHARACTERS_PER_TOKEN = 4;

function estimateTokens(prompt: WirePrompt): number {
  const parts = typeof prompt === 'string' ? [prompt] : prompt;
  return parts.reduce<number>(
    (sum, part) => sum + (typeof part === 'string' ? Math.ceil(part.length / CHARACTERS_PER_TOKEN) : 1),
    0,
  );
}

/** What a call may cost at most; text running to the end of the context counts with all of it. */
function costOf({ generation, answer }: CompletionCall, model: OriginModel): Cost {
  const promptTokens = generation.prompts.reduce<number>((sum, prompt) => sum + estimateTokens(prompt), 0);
  const sequences = generation.prompts.length * generation.choices;
  const each =
    generation.maxTokens < 0 ? model.contextLength : Math.min(generation.maxTokens, model.contextLength);
  return {
    requests: 1,
    tokens: promptTokens + sequences * each,
    promptTokens,
    sequences,
    model: answer.model,
  };
}
