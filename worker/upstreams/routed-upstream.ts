import { ApiError, type ErrorCode } from '../../shared/errors.ts';
import type { GenerationRequest, OriginModel, UsageAccount } from '../../shared/generation.ts';
import type { EventStream, TokenizerService, Upstream, UpstreamContext, WrittenStream } from './upstream.ts';
import type { UpstreamHealth, Verdict } from './upstream-health.ts';
import { type EventTimeouts, WatchedEvents } from './watched-events.ts';

export interface Candidate {
  readonly upstream: Upstream;
  readonly timeouts: EventTimeouts;
}

/** A written stream of one attempt. */
export interface RoutedStream extends WrittenStream {
  /** Milliseconds between two signs of life. */
  readonly idleMs: number;
  /** To be told how it ended: null = as it should, otherwise the code of the error. */
  readonly ended: (code: string | null) => void;
  /** Breaks it off. */
  readonly stop: (reason: ApiError) => void;
}

/** One request is tried at most at this many upstreams. */
const ATTEMPTS = 2;

/** Failures of the upstream: another one may do better. */
const UPSTREAM_FAILURES: ReadonlySet<string> = new Set<ErrorCode>(['upstream_error', 'upstream_timeout']);
/** It works, but not now: worth asking another one, no reason to avoid it. */
const BUSY: ReadonlySet<string> = new Set<ErrorCode>([
  'server_is_overloaded',
  'model_loading',
  'model_unavailable',
]);
/** Said of a server that may not have been asked at all. */
const NOT_ASKED: ReadonlySet<string> = new Set<ErrorCode>(['unsupported_parameter', 'unsupported_endpoint']);

const codeOf = (thrown: unknown): string => (thrown instanceof ApiError ? thrown.code : 'internal_error');

/** What an error says about the upstream; null = it went well. */
function verdictOf(code: string | null): Verdict {
  if (code === null) return 'success';
  if (UPSTREAM_FAILURES.has(code)) return 'failure';
  return BUSY.has(code) || NOT_ASKED.has(code) ? 'unknown' : 'success';
}

/** Of two that say when to come again, the one that says the shorter time; it says more than one that has failed. */
function sooner(one: ApiError | null, other: ApiError): ApiError {
  const waits = ({ headers }: ApiError) => Number(headers['retry-after'] ?? Infinity);
  return one !== null && waits(one) <= waits(other) ? one : other;
}

/**
 * The upstreams of one model in the order in which one request should try them. A second one is asked only before the
 * first event, and only after a failure that may be different elsewhere.
 */
export class RoutedUpstream implements Upstream {
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

  /** The upstream that was asked last: once a stream has begun, the one that serves it. */
  get name(): string {
    return this.#current.upstream.name;
  }

  /** Null when none of them shows its tokenizer. */
  get tokenizer(): TokenizerService | null {
    const showing = this.#candidates.filter(({ upstream }) => upstream.tokenizer !== null);
    if (showing.length === 0) return null;
    const ask = <T>(signal: AbortSignal, call: (tokenizer: TokenizerService) => Promise<T>): Promise<T> =>
      this.#tryEach(showing, signal, async ({ upstream }) => {
        const judge = this.#health.begin(upstream.name);
        try {
          return await call(upstream.tokenizer!);
        } catch (thrown) {
          if (!signal.aborted && verdictOf(codeOf(thrown)) === 'failure') judge('failure');
          throw thrown;
        } finally {
          // One that tells tokens may still fail to generate.
          judge('unknown');
        }
      });
    return {
      tokenize: (request, signal) => ask(signal, (tokenizer) => tokenizer.tokenize(request, signal)),
      detokenize: (request, signal) => ask(signal, (tokenizer) => tokenizer.detokenize(request, signal)),
      info: (model, signal) => ask(signal, (tokenizer) => tokenizer.info(model, signal)),
    };
  }

  models(signal: AbortSignal): Promise<readonly OriginModel[]> {
    return this.#current.upstream.models(signal);
  }

  usageOf(account: string, signal: AbortSignal): Promise<UsageAccount | null> {
    return this.#current.upstream.usageOf(account, signal);
  }

  generate(request: GenerationRequest, context: UpstreamContext): Promise<EventStream | RoutedStream> {
    return this.#tryEach(this.#candidates, context.signal, (candidate, last) => {
      this.#current = candidate;
      return this.#attempt(candidate, request, context, last);
    });
  }

  /** What the first attempt gives that is neither null nor a failure that may be different elsewhere. */
  async #tryEach<T>(
    candidates: readonly Candidate[],
    signal: AbortSignal,
    attempt: (candidate: Candidate, last: boolean) => Promise<T | null>,
  ): Promise<T> {
    const attempts = candidates.slice(0, ATTEMPTS);
    let busy: ApiError | null = null;
    for (const [index, candidate] of attempts.entries()) {
      const last = index === attempts.length - 1;
      try {
        const result = await attempt(candidate, last);
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

  /** Null when the stream began with a failure that another upstream may not have. */
  async #attempt(
    { upstream, timeouts }: Candidate,
    request: GenerationRequest,
    context: UpstreamContext,
    last: boolean,
  ): Promise<EventStream | RoutedStream | null> {
    const judge = this.#health.begin(upstream.name);
    const abort = new AbortController();
    const leave = (): void => {
      verdict('unknown');
      abort.abort(context.signal.reason);
    };
    const verdict = (of: Verdict): void => {
      // Once: a signal keeps what its listeners refer to until a full collection of garbage.
      context.signal.removeEventListener('abort', leave);
      judge(of);
    };
    if (context.signal.aborted) leave();
    else context.signal.addEventListener('abort', leave, { once: true });
    try {
      const stream = await upstream.generate(request, { ...context, signal: abort.signal });
      const ended = (code: string | null) => verdict(verdictOf(code));
      if ('body' in stream) {
        return { ...stream, idleMs: timeouts.idleMs, ended, stop: (reason) => abort.abort(reason) };
      }
      const events = new WatchedEvents(stream, {
        timeouts,
        now: this.#now,
        after: context.after,
        abort,
        ended,
      });
      const failure = (await events.peek()).find((event) => event.type === 'error');
      if (!failure?.retryable || last) return events;
      abort.abort();
      return null;
    } catch (thrown) {
      verdict(context.signal.aborted ? 'unknown' : verdictOf(codeOf(thrown)));
      abort.abort();
      throw thrown;
    }
  }
}
