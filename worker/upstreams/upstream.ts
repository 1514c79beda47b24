import type {
  GenerationEvent,
  GenerationRequest,
  OriginModel,
  UsageAccount,
} from '../../shared/generation.ts';
import type {
  DetokenizeRequest,
  DetokenizeResult,
  TokenizeRequest,
  TokenizeResult,
  TokenizerInfo,
} from '../../shared/tokenization.ts';
import type { After } from '../timers/request-timers.ts';

/**
 * A started generation: batches of events that arrived together, in order; an empty one is a sign of life. The last
 * event of all is exactly one `done` or `error`; a stream that ends without either has failed.
 */
export type EventStream = AsyncIterable<readonly GenerationEvent[]>;

/** A stream that its upstream writes as the caller reads it, between accounts of what it has come to. */
export interface WrittenStream {
  readonly body: ReadableStream<Uint8Array>;
  /** Unix milliseconds. */
  readonly askedAt: number;
  /** What it has come to, by the upstream itself; null when that does not know it. @throws ApiError 502, 503, 504 */
  account(): Promise<UsageAccount | null>;
}

export interface UpstreamContext {
  /** Ends all work at the upstream at once. */
  readonly signal: AbortSignal;
  /** W3C trace context to pass on. */
  readonly traceparent: string;
  /** Time limits of this request. */
  readonly after: After;
  /** The caller wants tokens named by their ids. */
  readonly tokensAsIds: boolean;
  /** Body fields that an OpenAI-compatible server gets as they were sent; our origin does not. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** Something that can complete text: our origin, or any OpenAI-compatible server. */
export interface Upstream {
  readonly name: string;
  /**
   * Resolves once the upstream has accepted the request (validated, tokenised, queued). Whether it writes the stream as it
   * may have been asked to is its own choice.
   * @throws ApiError what the caller should see: the upstream's own 4xx, or 502, 503, 504
   */
  generate(request: GenerationRequest, context: UpstreamContext): Promise<EventStream | WrittenStream>;
  /** The models it serves. @throws ApiError 502, 503, 504 */
  models(signal: AbortSignal): Promise<readonly OriginModel[]>;
  /** What the generation of that account has used; null where nobody knows. @throws ApiError 502, 503, 504 */
  usageOf(account: string, signal: AbortSignal): Promise<UsageAccount | null>;
  /** Null when this kind of upstream cannot show its tokenizer. */
  readonly tokenizer: TokenizerService | null;
}

/** A model's tokenizer, seen from outside. All may throw the ApiErrors of `generate`. */
export interface TokenizerService {
  tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<TokenizeResult>;
  detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<DetokenizeResult>;
  info(model: string, signal: AbortSignal): Promise<TokenizerInfo>;
}
