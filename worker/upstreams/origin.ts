import { type OriginActivity, originActivity } from '@continuo/shared/activity.ts';
import { IGNORED_KEYWORDS_HEADER, neededCapabilities } from '@continuo/shared/capabilities.ts';
import { ApiError, type ErrorCode, isErrorCode } from '@continuo/shared/errors.ts';
import type { GenerationRequest } from '@continuo/shared/generation.ts';
import { type OriginModel, originModel } from '@continuo/shared/origin-model.ts';
import { tokenLimitNumber } from '@continuo/shared/sampling.ts';
import {
  importSigningKey,
  SECRET_ID_HEADER,
  SIGNATURE_HEADER,
  type SigningKey,
  secretId,
  sign,
} from '@continuo/shared/signing.ts';
import { withTimeLimit } from '@continuo/shared/time-limit.ts';
import {
  type DetokenizeRequest,
  detokenizeResult,
  type TokenizeRequest,
  tokenizeResult,
  tokenizerInfo,
} from '@continuo/shared/tokenization.ts';
import { accountList, type ListedAccount, type UsageAccount, usageAccount } from '@continuo/shared/usage.ts';
import * as z from 'zod';
import { afterAlone } from '../timers/request-timers.ts';
import { type Acceptance, type Fetch, fetchUpstream, readJsonBody } from './fetch-upstream.ts';
import { OriginStream, type Validation } from './origin-stream.ts';
import type { EventBatches, TokenizerService, Upstream, UpstreamContext } from './upstream.ts';
import type { OriginModelName } from './upstream-config.ts';
import { loading, malformed, unreachable } from './upstream-errors.ts';

interface OriginOptions {
  readonly name: string;
  /** Base address, e.g. `http://10.0.0.7:9100`. */
  readonly url: string;
  readonly fetch: Fetch;
  readonly secret: string;
  /** The public names of its models; null = its own names. */
  readonly models: readonly OriginModelName[] | null;
  /** Milliseconds until the origin must have answered with a status. */
  readonly acceptTimeoutMs: number;
  readonly validation: Validation;
  readonly now: () => number;
}

interface OriginRequest {
  readonly method: 'GET' | 'POST';
  /** Path with query. */
  readonly path: string;
  readonly body?: unknown;
  readonly signal: AbortSignal;
  /** Absent = the caller limits the time. */
  readonly acceptance?: Acceptance;
  readonly headers?: Readonly<Record<string, string>>;
}

const modelList = z.object({ models: z.array(originModel), capabilities: z.array(z.string()) });

/** Speaks the origin's protocol: signed requests, events as NDJSON. */
export class OriginUpstream implements Upstream {
  readonly name: string;
  readonly tokenizer: TokenizerService;
  readonly #options: OriginOptions;
  /** Base address without a trailing slash. */
  readonly #base: string;
  #key: { readonly id: string; readonly key: SigningKey } | null = null;
  /** What the origin announced; null = it has not been asked. */
  #capabilities: ReadonlySet<string> | null = null;

  constructor(options: OriginOptions) {
    this.name = options.name;
    this.#options = options;
    this.#base = new URL('/', options.url).href.slice(0, -1);
    this.tokenizer = {
      tokenize: async (body, signal) => {
        // An origin that does not know the field of completions would also ignore that of this call.
        this.#requireCapabilities(body.parseSpecial ? [] : ['plainText']);
        return this.#post('/tokenize', this.#named(body), signal, tokenizeResult);
      },
      detokenize: (body, signal) => this.#post('/detokenize', this.#named(body), signal, detokenizeResult),
      info: (model, signal) =>
        this.#json(
          { method: 'GET', path: `/tokenizer_info?model=${encodeURIComponent(this.#nameOf(model))}`, signal },
          tokenizerInfo,
        ),
    };
  }

  async generate(request: GenerationRequest, context: UpstreamContext): Promise<EventBatches> {
    const { signal, after, abort, traceparent } = context;
    const acceptance = { after, abort, ms: this.#options.acceptTimeoutMs };
    this.#requireCapabilities(neededCapabilities(request));
    const sent = { method: 'POST', path: '/generate', body: this.#named(wireForm(request)) } as const;
    const response = await this.#send({ ...sent, signal, acceptance, headers: { traceparent } });
    if (response.body === null) throw malformed();
    const ignored = response.headers.get(IGNORED_KEYWORDS_HEADER);
    if (ignored !== null) context.onIgnoredKeywords(ignored);
    const report = (detail: string) => reportMismatch(this.name, detail);
    return new OriginStream(response.body, this.#options.validation, report);
  }

  /** @throws ApiError 502 if the origin would ignore a part of the request */
  #requireCapabilities(needed: readonly string[]): void {
    const capabilities = this.#capabilities;
    if (capabilities === null) return;
    const missing = needed.find((name) => !capabilities.has(name));
    if (missing === undefined) return;
    reportMismatch(this.name, `The origin does not support '${missing}'.`);
    throw malformed();
  }

  async models(signal: AbortSignal): Promise<readonly OriginModel[]> {
    const request = { method: 'GET', path: '/models', signal } as const;
    const { models, capabilities } = await this.#json(request, modelList);
    this.#capabilities = new Set(capabilities);
    if (models.length === 0) throw loading();
    return this.#options.models?.flatMap((name) => renamed(models, name)) ?? models;
  }

  /** The origin's own name of a model. */
  #nameOf(model: string): string {
    const named = this.#options.models?.find(({ id }) => id === model);
    return named?.upstreamId ?? model;
  }

  #publicName(name: string): string {
    return this.#options.models?.find(({ id, upstreamId = id }) => upstreamId === name)?.id ?? name;
  }

  #named<T extends { readonly model: string }>(request: T): T {
    return { ...request, model: this.#nameOf(request.model) };
  }

  usageOf(account: string, signal: AbortSignal): Promise<UsageAccount | null> {
    const path = `/usage?account=${encodeURIComponent(account)}`;
    return this.#json({ method: 'GET', path, signal }, usageAccount);
  }

  async accountsUnder(prefix: string, signal: AbortSignal): Promise<readonly ListedAccount[]> {
    const path = `/usage?under=${encodeURIComponent(prefix)}`;
    const listed = await this.#json({ method: 'GET', path, signal }, accountList);
    return listed.map((account) => ({ ...account, model: this.#publicName(account.model) }));
  }

  async activity(signal: AbortSignal): Promise<OriginActivity> {
    const request = { method: 'GET', path: '/activity', signal } as const;
    const { models, ...rest } = await this.#json(request, originActivity);
    return { ...rest, models: models.map((model) => ({ ...model, id: this.#publicName(model.id) })) };
  }

  #post<T>(
    path: string,
    body: TokenizeRequest | DetokenizeRequest,
    signal: AbortSignal,
    schema: z.ZodType<T>,
  ): Promise<T> {
    return this.#json({ method: 'POST', path, body, signal }, schema);
  }

  /** Returns a JSON response. The accept timeout covers the whole body. */
  async #json<T>(request: OriginRequest, schema: z.ZodType<T>): Promise<T> {
    const read = async (signal: AbortSignal): Promise<T> => {
      const response = await this.#send({ ...request, signal });
      const body = await readJsonBody(response);
      const parsed = schema.safeParse(body);
      if (parsed.success) return parsed.data;
      const [issue] = parsed.error.issues;
      const detail = `Invalid '${issue!.path.join('.')}' in the answer to ${request.path.split('?')[0]}.`;
      // One that broke off says nothing about versions.
      if (body !== null) reportMismatch(this.name, detail);
      throw malformed();
    };
    return withTimeLimit(
      { signal: request.signal, after: afterAlone, ms: this.#options.acceptTimeoutMs },
      read,
      (thrown, late) => (late ? unreachable('timeout') : thrown),
    );
  }

  /** Returns a 200 of the origin. @throws ApiError for the client, on any other status */
  async #send(request: OriginRequest): Promise<Response> {
    const { method, signal, acceptance } = request;
    const body = request.body === undefined ? '' : JSON.stringify(request.body);
    const headers = {
      ...request.headers,
      'content-type': 'application/json',
      ...(await this.#signature(request, body)),
    };
    const { fetch } = this.#options;
    const response = await fetchUpstream(
      this.#base + request.path,
      { method, headers, ...(request.body === undefined ? {} : { body }) },
      { fetch, signal, acceptance },
    );
    if (response.status !== 200) throw await errorOf(response, this.name);
    return response;
  }

  async #signature(request: OriginRequest, body: string): Promise<Record<string, string>> {
    const { secret, now } = this.#options;
    // workerd lets requests share the key, but not a promise of it.
    this.#key ??= { id: await secretId(secret), key: await importSigningKey(secret) };
    const claims = { timestamp: now(), nonce: crypto.randomUUID() };
    const signature = await sign(this.#key.key, { method: request.method, path: request.path, body }, claims);
    return { [SIGNATURE_HEADER]: signature, [SECRET_ID_HEADER]: this.#key.id };
  }
}

/** The form of a request in JSON. A schema goes as text, so that only the compiler parses it. */
const wireForm = ({ constraint, ...request }: GenerationRequest) => ({
  ...request,
  maxTokens: tokenLimitNumber(request.maxTokens),
  constraint:
    constraint?.type === 'json_schema'
      ? { ...constraint, value: JSON.stringify(constraint.value) }
      : constraint,
});

/** Returns the model under its public name; an empty list if the origin does not have it. */
function renamed(models: readonly OriginModel[], { id, upstreamId = id }: OriginModelName): OriginModel[] {
  const model = models.find((served) => served.id === upstreamId || served.aliases.includes(upstreamId));
  return model === undefined ? [] : [{ ...model, id, aliases: [] }];
}

const envelope = z.object({
  error: z.object({ message: z.string(), param: z.string().nullish(), code: z.string() }),
});

/** Codes that do not concern the caller: the Worker has checked its fields. */
const MISMATCHES: ReadonlySet<string> = new Set<ErrorCode>([
  'protocol_mismatch',
  'unknown_url',
  'method_not_supported',
]);

/**
 * Returns the client's error for a response that is not 200: the origin's own errors as they are, with the
 * time to wait, and 502 for everything else.
 */
async function errorOf(response: Response, upstream: string): Promise<ApiError> {
  const body = envelope.safeParse(await readJsonBody(response));
  // 401 and 403 concern the Worker's signature, not the client's key.
  const isInternal = response.status === 401 || response.status === 403 || response.status === 500;
  if (!body.success || isInternal) return malformed();
  const { code, message, param } = body.data.error;
  if (MISMATCHES.has(code)) {
    reportMismatch(upstream, message);
    return malformed();
  }
  // The origin waited for the Worker's request, which says nothing about the caller's.
  if (code === 'request_timeout') return unreachable('timeout');
  if (!isErrorCode(code)) return malformed();
  return new ApiError(code, message, { param: param ?? null, headers: retryHeaders(response) });
}

/** Logs that the versions of Worker and origin do not fit together. */
function reportMismatch(upstream: string, detail: string): void {
  console.error(JSON.stringify({ event: 'protocol_mismatch', upstream, detail }));
}

const RETRY_HEADERS = ['retry-after', 'retry-after-ms', 'x-should-retry'];

function retryHeaders(response: Response): Record<string, string> {
  const named = RETRY_HEADERS.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  return Object.fromEntries(named);
}
