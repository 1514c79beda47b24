import { ApiError } from '@continuo/shared/errors.ts';
import { SseDecoder } from '@continuo/shared/framing.ts';
import type { GenerationEvent, GenerationRequest } from '@continuo/shared/generation.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import { sha256Hex } from '@continuo/shared/signing.ts';
import { withTimeLimit } from '@continuo/shared/time-limit.ts';
import { afterAlone } from '../timers/request-timers.ts';
import { type Fetch, fetchUpstream, MAX_MESSAGE_LENGTH, readJsonBody } from './fetch-upstream.ts';
import { markIds } from './openai-chunk.ts';
import { errorOfOpenAiResponse, noRawCompletions } from './openai-errors.ts';
import { joinTexts, OpenAiEvents } from './openai-events.ts';
import { openAiBody } from './openai-request.ts';
import {
  cannotScore,
  echoRequest,
  isScoring,
  refusesEcho,
  type ScoringRequest,
  scoringEvents,
} from './openai-scoring.ts';
import { StreamReader } from './stream-reader.ts';
import { estimateTokens } from './token-estimate.ts';
import type { EventBatches, Upstream, UpstreamContext } from './upstream.ts';
import type { OpenAiConfig } from './upstream-config.ts';
import { interrupted, malformed } from './upstream-errors.ts';

type Configured =
  | 'name'
  | 'url'
  | 'models'
  | 'flavor'
  | 'flexPriority'
  | 'routerHeaders'
  | 'scoring'
  | 'user';

interface OpenAiOptions extends Readonly<Pick<OpenAiConfig, Configured>> {
  readonly fetch: Fetch;
  readonly apiKey: string | null;
  /** Send a prefix cache salt with every request, not only with those that have one. */
  readonly cacheSalt: boolean;
  /** Milliseconds until the server must have answered with a status. */
  readonly acceptTimeoutMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** OpenAI-compatible servers do not report the size of their vocabulary, and check ids themselves. */
const ANY_VOCABULARY = 2 ** 31;

/** Milliseconds in which a server must answer a list of models. */
const PROBE_TIMEOUT_MS = 1_000;

/** Says why llm-d's router refuses a request. Its body is plain text. */
const DROPPED_REASON = 'x-llm-d-request-dropped-reason';

/** Milliseconds for which a server that could not score a prompt is not asked to. */
const LEARNED_MS = 600_000;

/** An OpenAI-compatible server: vLLM, Ollama, LM Studio, llama.cpp, a hosted API. */
export class OpenAiUpstream implements Upstream {
  readonly name: string;
  readonly tokenizer = null;
  readonly #options: OpenAiOptions;
  /** By model: when one that could not score is tried again, in Unix milliseconds. */
  readonly #triedAgainAt = new Map<string, number>();

  constructor(options: OpenAiOptions) {
    this.name = options.name;
    this.#options = options;
  }

  async models(): Promise<readonly OriginModel[]> {
    return this.#options.models.map(({ id, created, contextLength, infill }) => ({
      id,
      created,
      contextLength,
      infill,
      vocabularySize: ANY_VOCABULARY,
      aliases: [],
      defaults: {},
      state: 'loaded',
    }));
  }

  /** Any response shows that the server runs. */
  async isReachable(signal: AbortSignal): Promise<boolean> {
    const { fetch, acceptTimeoutMs } = this.#options;
    const limit = { signal, after: afterAlone, ms: Math.min(acceptTimeoutMs, PROBE_TIMEOUT_MS) };
    const ask = (limited: AbortSignal) =>
      fetchUpstream(this.#address('models'), { headers: this.#key }, { fetch, signal: limited });
    try {
      const response = await withTimeLimit(limit, ask);
      await response.body?.cancel();
      return true;
    } catch {
      return signal.aborted;
    }
  }

  get #key(): { authorization?: string } {
    const { apiKey } = this.#options;
    return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  }

  #address(path: string): string {
    return `${this.#options.url.replace(/\/+$/, '')}/${path}`;
  }

  async usageOf(): Promise<null> {
    return null;
  }

  async accountsUnder(): Promise<readonly []> {
    return [];
  }

  async generate(wanted: GenerationRequest, context: UpstreamContext): Promise<EventBatches> {
    const model = this.#options.models.find(({ id }) => id === wanted.model);
    if (!model?.rawCompletions) throw noRawCompletions(wanted.model);
    const { now, flavor, flexPriority } = this.#options;
    const needsScoring = isScoring(wanted) || wanted.promptTopLogprobs !== null;
    if (needsScoring && !this.#canScore(wanted.model)) throw cannotScore(wanted.model);
    const request = isScoring(wanted) ? echoRequest(wanted) : wanted;
    const fields = openAiBody(request, {
      ...context,
      model: model.upstreamId ?? model.id,
      contextLength: model.contextLength,
      flavor,
      flexPriority,
      cacheNamespace: await this.#cacheNamespaceOf(request),
      user: await this.#userOf(request, context),
    });
    const body = isScoring(wanted) ? { ...fields, echo: true } : fields;
    context.onPassedOn(new Set(Object.keys(body)));
    const accept = (): void =>
      context.onAccepted(request.prompts.reduce((sum: number, prompt) => sum + estimateTokens(prompt), 0));
    // A plain response has its status only when it is finished.
    if (!request.stream) accept();
    const response = await this.#post(body, request, context);
    if (response.status !== 200) {
      const names = { model: request.model, upstreamModel: body.model as string };
      const { error, fault } = await errorOfOpenAiResponse(response, names, now());
      const { type = null, code = response.headers.get(DROPPED_REASON) } = fault ?? {};
      // The caller's own mistakes are not failures of the server.
      if (error.status !== 400) context.report({ upstream: this.name, status: response.status, type, code });
      throw isScoring(wanted) && refusesEcho(error) ? cannotScore(request.model) : error;
    }
    if (request.stream) accept();
    const events = new OpenAiEvents(request, context.shown);
    const prepare = context.shown.promptLogprobs === null ? undefined : markIds;
    const batches = isScoring(wanted)
      ? readScored(response, events, wanted)
      : request.stream
        ? readChunks(response, events, request, now)
        : readWhole(response, events, prepare);
    return needsScoring ? this.#learning(wanted.model, batches) : batches;
  }

  #canScore(model: string): boolean {
    return this.#options.scoring && (this.#triedAgainAt.get(model) ?? 0) <= this.#options.now();
  }

  /** Remembers a model whose response lacks the logprobs of the prompt. */
  async *#learning(model: string, batches: EventBatches): AsyncGenerator<readonly GenerationEvent[]> {
    try {
      yield* batches;
    } catch (thrown) {
      const isRefusal = thrown instanceof ApiError && thrown.code === 'unsupported_endpoint';
      if (isRefusal) this.#triedAgainAt.set(model, this.#options.now() + LEARNED_MS);
      throw thrown;
    }
  }

  async #post(
    body: Readonly<Record<string, unknown>>,
    request: GenerationRequest,
    { signal, after, abort, traceparent }: UpstreamContext,
  ): Promise<Response> {
    const { fetch } = this.#options;
    const { stream, deadlineMs } = request;
    // A plain response has its status only when it is finished.
    const ms = stream ? this.#options.acceptTimeoutMs : deadlineMs;
    const headers = {
      'content-type': 'application/json',
      accept: stream ? 'text/event-stream' : 'application/json',
      ...this.#key,
      ...(await this.#routerHeaders(request)),
      traceparent,
    };
    return fetchUpstream(
      this.#address('completions'),
      { method: 'POST', headers, body: JSON.stringify(body) },
      { fetch, signal, acceptance: { after, ms, abort } },
    );
  }

  /** Returns what llm-d's router shares its capacity by: a pseudonym of the tenant, and the service tier. */
  async #routerHeaders({ tenantId, flex }: GenerationRequest): Promise<Readonly<Record<string, string>>> {
    const { flavor, routerHeaders } = this.#options;
    if (flavor !== 'llm-d') return {};
    return {
      [`${routerHeaders}-fairness-id`]: await sha256Hex(JSON.stringify([tenantId, 'fairness'])),
      [`${routerHeaders}-objective`]: flex ? 'flex' : 'default',
    };
  }

  /** Hashes the client's salt with the tenant, so that tenants never share a cache. */
  async #cacheNamespaceOf({ tenantId, cacheSalt }: GenerationRequest): Promise<string | null> {
    const isSalted = this.#options.cacheSalt || cacheSalt !== '';
    return isSalted ? await sha256Hex(JSON.stringify([tenantId, cacheSalt])) : null;
  }

  async #userOf({ tenantId }: GenerationRequest, { endUser }: UpstreamContext): Promise<string | null> {
    const { user } = this.#options;
    if (endUser === null || user === 'omit') return null;
    return user === 'plain' ? endUser : await sha256Hex(JSON.stringify([tenantId, 'user', endUser]));
  }
}

/** The events of a whole response. */
async function* readWhole(
  response: Response,
  events: OpenAiEvents,
  prepare?: (json: string) => string,
): AsyncGenerator<readonly GenerationEvent[]> {
  const body = await readJsonBody(response, prepare);
  yield [...events.opening(), ...events.whole(body)];
}

async function* readScored(
  response: Response,
  events: OpenAiEvents,
  request: ScoringRequest,
): AsyncGenerator<readonly GenerationEvent[]> {
  const body = await readJsonBody(response);
  yield [...events.opening(), ...scoringEvents(events.whole(body), request)];
}

async function* readChunks(
  { body }: Response,
  events: OpenAiEvents,
  { topLogprobs, tokensPerEvent }: GenerationRequest,
  now: () => number,
): AsyncGenerator<readonly GenerationEvent[]> {
  if (body === null) throw malformed();
  const reader = new StreamReader(body, now);
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: false });
  const sse = new SseDecoder();
  // Logprobs come token by token.
  const joins = topLogprobs === null && tokensPerEvent === undefined;
  // Held back until the first chunk, because until then another upstream can be tried.
  let opening = events.opening();
  try {
    for (;;) {
      const value = await reader.read().catch(() => {
        throw interrupted();
      });
      if (value === undefined) break;
      const payloads = sse.push(decoder.decode(value, { stream: true }));
      const batch = payloads.flatMap((payload) => events.push(payload));
      if (sse.pending > MAX_MESSAGE_LENGTH) throw malformed();
      if (batch.length === 0) continue;
      yield [...opening, ...(joins && reader.isAhead ? joinTexts(batch) : batch)];
      opening = [];
    }
    const rest = events.end();
    if (rest.length > 0) yield [...opening, ...rest];
  } finally {
    await reader.cancel().catch(() => {});
  }
}
