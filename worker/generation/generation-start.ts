import type { Hold } from '@continuo/limits/hold.ts';
import { fnv1aHex } from '@continuo/shared/fnv1a.ts';
import { type GenerationRequest, PROTOCOL_VERSION, type WirePrompt } from '@continuo/shared/generation.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { Principal } from '@continuo/shared/tenant.ts';
import type { ParsedCompletion } from '../dialects/parsed-completion.ts';
import { logUpstreamFailure } from '../http/access-log.ts';
import type { RequestContext } from '../http/request-context.ts';
import type { Catalogue } from '../upstreams/pool.ts';
import type { Envelope } from './format/completion-json.ts';
import { Generation } from './generation.ts';
import { costWith } from './request-cost.ts';

/** A request that has passed admission. */
interface AdmittedRequest {
  readonly request: Request;
  readonly context: RequestContext;
  readonly principal: Principal;
  readonly model: OriginModel;
  readonly parsed: ParsedCompletion;
  readonly hold: Hold;
  readonly catalogue: Catalogue;
}

/** Milliseconds that the origin has to report its own timeout before the Worker ends the request. */
const GRACE_MS = 5_000;

/** Sends a request to an upstream of its model. The generation ends its hold. */
export function startGeneration(admitted: AdmittedRequest): Generation {
  const { request, context, principal, model, parsed, hold, catalogue } = admitted;
  const { settings, now, timers, traceparent, waitUntil } = context;
  const affinity = { tenantId: principal.tenant.id, prompt: promptStart(parsed.generation) };
  const upstream = catalogue.upstreamFor(model, affinity);
  return new Generation({
    parsed,
    envelope: envelopeOf(parsed, model, context),
    hold,
    upstream,
    send: (signal, onAccepted) =>
      upstream.generate(wireRequest(admitted), {
        signal,
        traceparent,
        after: timers.after,
        extra: parsed.extra,
        tokensAsIds: parsed.response.tokensAsIds,
        shown: parsed.response,
        endUser: parsed.endUser,
        onAccepted,
        onIgnoredKeywords: (names) => {
          context.reply.ignoredKeywords = names;
        },
        onPassedOn: (names) => {
          const { ignoredFields } = context.reply;
          context.reply.ignoredFields = ignoredFields.filter((name) => !names.has(name));
        },
        report: (failure) => logUpstreamFailure(failure, context),
      }),
    onPromptTokens: (tokens) => hold.counted(costWith(tokens, parsed, model)),
    client: request.signal,
    timeoutMs: settings.REQUEST_TIMEOUT_MS + GRACE_MS,
    after: timers.after,
    now,
    waitUntil,
  });
}

/** Returns what begins the prompt, to choose an upstream by its cache. Files precede an infill. */
const promptStart = ({ prompts, context, infill }: ParsedCompletion['generation']): WirePrompt | null =>
  context?.prompt ?? infill?.files[0]?.text ?? prompts[0] ?? null;

const wireRequest = ({ parsed, model, principal, context, hold }: AdmittedRequest): GenerationRequest => ({
  version: PROTOCOL_VERSION,
  requestId: context.requestId,
  account: hold.id,
  tenantId: principal.tenant.id,
  weight: principal.tenant.weight,
  model: model.id,
  deadlineMs: context.settings.REQUEST_TIMEOUT_MS,
  ...parsed.generation,
  ...(context.batchKey !== null && { flex: true }),
});

const envelopeOf = (
  { response }: ParsedCompletion,
  model: OriginModel,
  context: RequestContext,
): Envelope => ({
  id: context.completionId,
  created: Math.floor(context.now() / 1_000),
  model: response.model,
  fingerprint: fingerprintOf(model),
});

/** The same fingerprint and seed give the same text. A model without one has a hash of its id and time. */
const fingerprintOf = ({ id, created, fingerprint }: OriginModel): string =>
  fingerprint ?? `fp_${fnv1aHex(`${id}@${created}`)}`;
