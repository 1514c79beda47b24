import { ApiError } from '@continuo/shared/errors.ts';
import type { GenerationRequest } from '@continuo/shared/generation.ts';
import { attempt, type EventTimeouts, withFirst } from './attempt.ts';
import type { AttemptContext, EventBatches, TokenizerService, Upstream } from './upstream.ts';
import { BUSY, codeOf, UPSTREAM_FAILURES, verdictOf } from './upstream-errors.ts';
import type { UpstreamHealth } from './upstream-health.ts';

export interface Candidate {
  readonly upstream: Upstream;
  readonly timeouts: EventTimeouts;
}

/** Maximum number of upstreams that one request is sent to. */
const ATTEMPTS = 2;

/** Returns the error with the shorter `retry-after`; an error without the header is the last choice. */
function sooner(first: ApiError | null, second: ApiError): ApiError {
  const waits = ({ headers }: ApiError) => Number(headers['retry-after'] ?? Infinity);
  return first !== null && waits(first) <= waits(second) ? first : second;
}

/**
 * The upstreams of one model, in the order in which one request tries them. The second one is tried only
 * before the first event, and only after a failure of the first one.
 */
export class RoutedUpstream {
  readonly #candidates: readonly Candidate[];
  readonly #health: UpstreamHealth;
  readonly #now: () => number;
  #current: Candidate;

  /** @param now Unix milliseconds */
  constructor(candidates: readonly Candidate[], health: UpstreamHealth, now: () => number) {
    this.#candidates = candidates;
    this.#health = health;
    this.#now = now;
    this.#current = candidates[0]!;
  }

  /** Name of the upstream that was tried last. Once a stream has started, it is the one that serves it. */
  get name(): string {
    return this.#current.upstream.name;
  }

  /** Null if no upstream has tokenizer endpoints. */
  get tokenizer(): TokenizerService | null {
    const showing = this.#candidates.filter(({ upstream }) => upstream.tokenizer !== null);
    if (showing.length === 0) return null;
    const ask = <T>(signal: AbortSignal, use: (tokenizer: TokenizerService) => Promise<T>): Promise<T> =>
      this.#tryEach(showing, signal, async ({ upstream }) => {
        const judge = this.#health.begin(upstream.name);
        try {
          return await use(upstream.tokenizer!);
        } catch (thrown) {
          if (!signal.aborted && verdictOf(codeOf(thrown)) === 'failure') judge('failure');
          throw thrown;
        } finally {
          // A tokenizer that works does not show that generation does.
          judge('unknown');
        }
      });
    return {
      tokenize: (request, signal) => ask(signal, (tokenizer) => tokenizer.tokenize(request, signal)),
      detokenize: (request, signal) => ask(signal, (tokenizer) => tokenizer.detokenize(request, signal)),
      info: (model, signal) => ask(signal, (tokenizer) => tokenizer.info(model, signal)),
    };
  }

  generate(request: GenerationRequest, context: AttemptContext): Promise<EventBatches> {
    return this.#tryEach(this.#candidates, context.signal, (candidate, last) => {
      this.#current = candidate;
      return this.#attempt(candidate, request, context, last);
    });
  }

  /** Returns the result of the first attempt that is not null and does not fail with an upstream error. */
  async #tryEach<T>(
    candidates: readonly Candidate[],
    signal: AbortSignal,
    tryOne: (candidate: Candidate, last: boolean) => Promise<T | null>,
  ): Promise<T> {
    const attempts = candidates.slice(0, ATTEMPTS);
    let busy: ApiError | null = null;
    for (const [index, candidate] of attempts.entries()) {
      const last = index === attempts.length - 1;
      try {
        const result = await tryOne(candidate, last);
        if (result) return result;
      } catch (thrown) {
        const code = codeOf(thrown);
        const elsewhere = UPSTREAM_FAILURES.has(code) || BUSY.has(code);
        if (!elsewhere || signal.aborted) throw thrown;
        if (BUSY.has(code) && thrown instanceof ApiError) busy = sooner(busy, thrown);
        if (last) throw busy ?? thrown;
      }
    }
    throw new ApiError('upstream_error', 'No model server could take the request.');
  }

  /** Returns null if the stream starts with an error that another upstream may not have. */
  async #attempt(
    { upstream, timeouts }: Candidate,
    request: GenerationRequest,
    context: AttemptContext,
    last: boolean,
  ): Promise<EventBatches | null> {
    const judge = this.#health.begin(upstream.name);
    const batches = attempt(upstream, request, context, timeouts, judge, this.#now);
    // An attempt without events fails.
    const first = (await batches.next()).value!;
    const failure = first.find((event) => event.type === 'error');
    if (!failure?.retryable || last) return withFirst(first, batches);
    await batches.return(undefined);
    return null;
  }
}
