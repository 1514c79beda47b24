import type { GenerationEvent, GenerationRequest } from '../../shared/generation.ts';

/** A started generation: events in order, ending with exactly one `done` or `error`. */
export type EventStream = AsyncIterable<GenerationEvent>;

export interface UpstreamContext {
  readonly signal: AbortSignal;
  /** W3C traceparent to pass on, when the caller sent one. */
  readonly traceparent: string | null;
}

/** Something that can complete text: our origin, or any OpenAI-compatible server. */
export interface Upstream {
  readonly name: string;
  /**
   * Resolves once the upstream has accepted the request (validated, tokenised, queued).
   * @throws ApiError what the caller should see: the upstream's own 4xx, or 502, 503, 504
   */
  generate(request: GenerationRequest, context: UpstreamContext): Promise<EventStream>;
}
