import { SseDecoder } from '../../shared/framing.ts';
import type { GenerationEvent, GenerationRequest, OriginModel } from '../../shared/generation.ts';
import { sha256Hex } from '../../shared/signing.ts';
import { MAX_MESSAGE_LENGTH } from './error-body.ts';
import { type Fetch, fetchUpstream } from './fetch-upstream.ts';
import { errorOfOpenAiAnswer, noRawCompletions } from './openai-errors.ts';
import { OpenAiEvents } from './openai-events.ts';
import { openAiBody } from './openai-request.ts';
import type { EventBatches, Upstream, UpstreamContext } from './upstream.ts';
import type { OpenAiModel } from './upstream-config.ts';
import { interrupted, malformed } from './upstream-errors.ts';

export interface OpenAiOptions {
  readonly name: string;
  /** Base address with version. */
  readonly url: string;
  readonly fetch: Fetch;
  readonly apiKey: string | null;
  readonly models: readonly OpenAiModel[];
  /** Send a prefix cache salt with every request, not only with those that have one. */
  readonly cacheSalt: boolean;
  /** Milliseconds until the server must have answered with a status. */
  readonly acceptTimeoutMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** OpenAI-compatible servers do not report the size of their vocabulary, and check ids themselves. */
const ANY_VOCABULARY = 2 ** 31;

/** An OpenAI-compatible server: vLLM, Ollama, LM Studio, llama.cpp, a hosted API. */
export class OpenAiUpstream implements Upstream {
  readonly name: string;
  readonly tokenizer = null;
  readonly #options: OpenAiOptions;

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

  async usageOf(): Promise<null> {
    return null;
  }

  async generate(request: GenerationRequest, context: UpstreamContext): Promise<EventBatches> {
    const model = this.#options.models.find(({ id }) => id === request.model);
    if (!model?.rawCompletions) throw noRawCompletions(request.model, this.name);
    const isSalted = this.#options.cacheSalt || request.cacheSalt !== '';
    const cacheSalt = isSalted ? await saltOf(request) : null;
    const body = openAiBody(request, model.upstreamId ?? model.id, { ...context, cacheSalt });
    const response = await this.#post(body, context);
    if (response.status !== 200) {
      throw await errorOfOpenAiAnswer(response, request.model, this.name, this.#options.now());
    }
    if (response.body === null) throw malformed();
    return readChunks(response.body, new OpenAiEvents(request));
  }

  #post(
    body: Readonly<Record<string, unknown>>,
    { signal, after, traceparent }: UpstreamContext,
  ): Promise<Response> {
    const { url, fetch, apiKey, acceptTimeoutMs } = this.#options;
    const headers = {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
      traceparent,
    };
    return fetchUpstream(
      `${url.replace(/\/+$/, '')}/completions`,
      { method: 'POST', headers, body: JSON.stringify(body) },
      { fetch, signal, after, acceptTimeoutMs },
    );
  }
}

/** Hashes the client's salt with the tenant, so that tenants never share a cache. */
const saltOf = ({ tenantId, cacheSalt }: GenerationRequest): Promise<string> =>
  sha256Hex(JSON.stringify([tenantId, cacheSalt]));

async function* readChunks(
  body: ReadableStream<Uint8Array>,
  events: OpenAiEvents,
): AsyncGenerator<readonly GenerationEvent[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: false });
  const sse = new SseDecoder();
  // Held back until the first chunk, because until then another upstream can be tried.
  let opening = events.opening();
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(() => {
        throw interrupted();
      });
      if (done) break;
      const batch = sse
        .push(decoder.decode(value, { stream: true }))
        .flatMap((payload) => events.push(payload));
      if (sse.pending > MAX_MESSAGE_LENGTH) throw malformed();
      if (batch.length === 0) continue;
      yield [...opening, ...batch];
      opening = [];
    }
    const rest = events.end();
    if (rest.length > 0) yield [...opening, ...rest];
  } finally {
    await reader.cancel().catch(() => {});
  }
}
