import type { OriginActivity } from '@continuo/shared/activity.ts';
import type { ApiError } from '@continuo/shared/errors.ts';
import type { GenerationEvent, GenerationRequest } from '@continuo/shared/generation.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { After } from '@continuo/shared/time-limit.ts';
import type {
  DetokenizeRequest,
  DetokenizeResult,
  TokenizeRequest,
  TokenizeResult,
  TokenizerInfo,
} from '@continuo/shared/tokenization.ts';
import type { ListedAccount, UsageAccount } from '@continuo/shared/usage.ts';

/**
 * The events of a started generation, in order, in batches that arrived together. An empty batch is a
 * heartbeat. The last event is the only `done` or `error`; a stream that ends without one has failed.
 */
export type EventBatches = AsyncIterable<readonly GenerationEvent[]>;

export interface UpstreamContext {
  /** Ends all work at the upstream at once. */
  readonly signal: AbortSignal;
  /** Aborts the signal with a reason for the client. */
  abort(reason: ApiError): void;
  /** W3C trace context to pass on. */
  readonly traceparent: string;
  /** Timers of this request. */
  readonly after: After;
  /** The client wants tokens named by their ids. */
  readonly tokensAsIds: boolean;
  /** What the response shows of the prompt. */
  readonly shown: ShownPrompt;
  /** Body fields that are passed on to an OpenAI-compatible server, but not to the origin. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** The field `user`; null = absent. */
  readonly endUser: string | null;
  /**
   * Called by upstreams without usage accounts when they have accepted the request.
   * @param promptTokens estimate
   */
  onAccepted(promptTokens: number): void;
  /** Called with the header of that name if the origin ignores keywords of the constraint's schema. */
  onIgnoredKeywords(names: string): void;
  /** Called by OpenAI-compatible upstreams with the fields of the body that they send. */
  onPassedOn(names: ReadonlySet<string>): void;
  /** Logs a server's failure, of which the caller sees only the kind. */
  report(failure: UpstreamFailure): void;
}

/** What all attempts of one request share. Each has its own signal, which follows the request's. */
export type AttemptContext = Omit<UpstreamContext, 'abort'>;

/** `echo`: all or the last tokens of the prompt. `promptLogprobs`: top logprobs in `prompt_logprobs`. */
export interface ShownPrompt {
  readonly echo: boolean;
  readonly echoLast: number | null;
  readonly promptLogprobs: number | null;
}

/** Why a server did not serve a request, without its message, which may quote the prompt. */
interface UpstreamFailure {
  readonly upstream: string;
  readonly status: number;
  readonly type: string | null;
  readonly code: string | number | null;
}

/** A server that completes text: the origin, or an OpenAI-compatible server. */
export interface Upstream {
  readonly name: string;
  /**
   * Resolves once the upstream has accepted the request (validated, tokenised, enqueued).
   * @throws ApiError for the client: the upstream's own 4xx, or 502, 503, 504
   */
  generate(request: GenerationRequest, context: UpstreamContext): Promise<EventBatches>;
  /** Returns the models it serves. @throws ApiError 502, 503, 504 */
  models(signal: AbortSignal): Promise<readonly OriginModel[]>;
  /** Returns whether the server answers now. Absent if `models` asks it. */
  isReachable?(signal: AbortSignal): Promise<boolean>;
  /** What that account's generation has used; null = unknown. @throws ApiError 502, 503, 504 */
  usageOf(account: string, signal: AbortSignal): Promise<UsageAccount | null>;
  /** Returns the accounts whose names begin with this text, under the public names of their models. */
  accountsUnder(prefix: string, signal: AbortSignal): Promise<readonly ListedAccount[]>;
  /** Returns what it does and did. Absent if it does not say. @throws ApiError 502, 503, 504 */
  activity?(signal: AbortSignal): Promise<OriginActivity>;
  /** Null if this kind of upstream has no tokenizer endpoints. */
  readonly tokenizer: TokenizerService | null;
}

/** A model's tokenizer. All methods throw the ApiErrors of `generate`. */
export interface TokenizerService {
  tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenizeResult>;
  detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<DetokenizeResult>;
  info(model: string, signal: AbortSignal): Promise<TokenizerInfo>;
}
