import * as z from 'zod';
import { ApiError } from '../../shared/errors.ts';
import { LineDecoder } from '../../shared/framing.ts';
import {
  type GenerationEvent,
  type GenerationRequest,
  type OriginModel,
  originModel,
  type UsageAccount,
  usageAccount,
} from '../../shared/generation.ts';
import { importSigningKey, SIGNATURE_HEADER, type SigningKey, sign } from '../../shared/signing.ts';
import {
  type DetokenizeRequest,
  detokenizeResult,
  type TokenizeRequest,
  tokenizeResult,
  tokenizerInfo,
} from '../../shared/tokenization.ts';
import { type After, afterAlone } from '../timers/request-timers.ts';
import { withTimeLimit } from '../timers/time-limit.ts';
import { ask, type Carrier } from './ask.ts';
import { errorOfAnswer } from './origin-errors.ts';
import { parseEvent } from './origin-events.ts';
import type { EventStream, TokenizerService, Upstream, UpstreamContext, WrittenStream } from './upstream.ts';
import type { OriginModelName } from './upstream-config.ts';
import { interrupted, loading, malformed, unreachable } from './upstream-errors.ts';

export interface OriginOptions {
  readonly name: string;
  /** Base address, e.g. `http://10.0.0.7:9100`. */
  readonly url: string;
  readonly carrier: Carrier;
  readonly secret: string;
  /** The names callers know its models by; null = its own. */
  readonly models: readonly OriginModelName[] | null;
  /** Milliseconds until the origin must have answered with a status. */
  readonly acceptTimeoutMs: number;
  readonly now: () => number;
}

interface OriginCall {
  readonly method: 'GET' | 'POST';
  /** Path with query. */
  readonly path: string;
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** The caller's own time limits, where it is a request. */
  readonly after?: After;
  readonly headers?: Readonly<Record<string, string>>;
}

const modelList = z.object({ models: z.array(originModel) });

/** Our own protocol: signed requests; events as NDJSON, or streams as their callers read them. */
export class OriginUpstream implements Upstream {
  readonly name: string;
  readonly tokenizer: TokenizerService;
  readonly #options: OriginOptions;
  /** Where paths begin, without a slash at its end. */
  readonly #base: string;
  #key: SigningKey | null = null;

  constructor(options: OriginOptions) {
    this.name = options.name;
    this.#options = options;
    this.#base = new URL('/', options.url).href.slice(0, -1);
    this.tokenizer = {
      tokenize: (body, signal) => this.#ask('/tokenize', this.#named(body), signal, tokenizeResult),
      detokenize: (body, signal) => this.#ask('/detokenize', this.#named(body), signal, detokenizeResult),
      info: (model, signal) =>
        this.#json(
          { method: 'GET', path: `/tokenizer_info?model=${encodeURIComponent(this.#nameOf(model))}`, signal },
          tokenizerInfo,
        ),
    };
  }

  async generate(request: GenerationRequest, context: UpstreamContext): Promise<EventStream | WrittenStream> {
    const { signal, after, traceparent } = context;
    const askedAt = this.#options.now();
    const call = { method: 'POST', path: '/generate', body: this.#named(request) } as const;
    const response = await this.#call({ ...call, signal, after, headers: { traceparent } });
    const { body } = response;
    if (body === null) throw malformed();
    const isWritten = response.headers.get('content-type')?.startsWith('text/event-stream');
    if (!isWritten) return new EventReader(body);
    return { body, askedAt, account: () => this.usageOf(request.account ?? '', signal) };
  }

  async models(signal: AbortSignal): Promise<readonly OriginModel[]> {
    const { models } = await this.#json({ method: 'GET', path: '/models', signal }, modelList);
    if (models.length === 0) throw loading();
    return this.#options.models?.flatMap((name) => renamed(models, name)) ?? models;
  }

  /** The origin's own name of a model. */
  #nameOf(model: string): string {
    const named = this.#options.models?.find(({ id }) => id === model);
    return named?.upstreamId ?? model;
  }

  #named<T extends { readonly model: string }>(request: T): T {
    return { ...request, model: this.#nameOf(request.model) };
  }

  usageOf(account: string, signal: AbortSignal): Promise<UsageAccount | null> {
    const path = `/usage?account=${encodeURIComponent(account)}`;
    return this.#json({ method: 'GET', path, signal }, usageAccount);
  }

  #ask<T>(
    path: string,
    body: TokenizeRequest | DetokenizeRequest,
    signal: AbortSignal,
    schema: z.ZodType<T>,
  ): Promise<T> {
    return this.#json({ method: 'POST', path, body, signal }, schema);
  }

  /** A whole answer, for which the time is that for a status alone elsewhere. */
  async #json<T>(call: OriginCall, schema: z.ZodType<T>): Promise<T> {
    const read = async (signal: AbortSignal): Promise<T> => {
      const response = await this.#call({ ...call, signal });
      const parsed = schema.safeParse(await response.json().catch(() => null));
      if (!parsed.success) throw malformed();
      return parsed.data;
    };
    return withTimeLimit(
      { signal: call.signal, after: afterAlone, ms: this.#options.acceptTimeoutMs },
      read,
      (thrown, late) => (late ? unreachable('timeout') : thrown),
    );
  }

  /** A 200 from the origin; anything else is thrown as what the caller should see. */
  async #call(call: OriginCall): Promise<Response> {
    const { method, signal, after = afterAlone } = call;
    const body = call.body === undefined ? '' : JSON.stringify(call.body);
    const headers = {
      ...call.headers,
      'content-type': 'application/json',
      [SIGNATURE_HEADER]: await this.#signature(call, body),
    };
    const { carrier, acceptTimeoutMs } = this.#options;
    const response = await ask(
      this.#base + call.path,
      { method, headers, ...(call.body === undefined ? {} : { body }) },
      { carrier, signal, after, acceptTimeoutMs },
    );
    if (response.status !== 200) throw await errorOfAnswer(response);
    return response;
  }

  async #signature(call: OriginCall, body: string): Promise<string> {
    // Unlike streams and sockets, a key does not belong to the request that made it; the promise of one would.
    this.#key ??= await importSigningKey(this.#options.secret);
    const claims = { timestamp: this.#options.now(), nonce: crypto.randomUUID() };
    return sign(this.#key, { method: call.method, path: call.path, body }, claims);
  }
}

/** The model under the name callers know it by; none when the origin does not have it. */
function renamed(models: readonly OriginModel[], { id, upstreamId = id }: OriginModelName): OriginModel[] {
  const model = models.find((one) => one.id === upstreamId || one.aliases.includes(upstreamId));
  return model === undefined ? [] : [{ ...model, id, aliases: [] }];
}

/** Events as they arrive, one batch per network chunk, maybe an empty one; lines and characters may be split anywhere. */
class EventReader implements AsyncIterableIterator<readonly GenerationEvent[]> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  readonly #lines = new LineDecoder();

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Runs once per event, hence no generator. */
  async next(): Promise<IteratorResult<readonly GenerationEvent[]>> {
    try {
      for (;;) {
        const { value, done } = await this.#reader.read();
        if (done) return { value: undefined, done };
        const lines = this.#lines.push(this.#decoder.decode(value, { stream: true }));
        // Empty lines are signs of life: no events, but no silence either.
        if (lines.length > 0)
          return { value: lines.filter((line) => line !== '').map(parseEvent), done: false };
      }
    } catch (thrown) {
      void this.return();
      throw thrown instanceof ApiError ? thrown : interrupted();
    }
  }

  async return(): Promise<IteratorResult<readonly GenerationEvent[]>> {
    await this.#reader.cancel().catch(() => {});
    return { value: undefined, done: true };
  }
}
