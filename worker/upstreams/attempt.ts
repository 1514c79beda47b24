import type { GenerationEvent, GenerationRequest } from '@continuo/shared/generation.ts';
import { isTerminal } from '@continuo/shared/generation.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import type { Upstream, UpstreamContext } from './upstream.ts';
import { causeOf, codeOf, interrupted, silent, verdictOf } from './upstream-errors.ts';
import type { Verdict } from './upstream-health.ts';

type Batch = readonly GenerationEvent[];

export interface EventTimeouts {
  /** Milliseconds from the acceptance to the first event. */
  readonly firstEventMs: number;
  /** Milliseconds between two reads, of events or heartbeats. */
  readonly idleMs: number;
}

/** The events of one attempt at an upstream. Fails if the upstream is silent for too long, and judges the upstream. */
export class Attempt implements AsyncIterableIterator<Batch> {
  readonly #context: UpstreamContext;
  readonly #timeouts: EventTimeouts;
  readonly #judge: (verdict: Verdict) => void;
  readonly #silence: SilenceTimer;
  readonly #abort = new AbortController();
  #batches: AsyncIterator<Batch> | null = null;
  /** Read by `begin`, but not yet returned by `next`. */
  #first: Batch | null = null;

  /** @param judge takes the verdict about the upstream, once */
  constructor(
    context: UpstreamContext,
    timeouts: EventTimeouts,
    judge: (verdict: Verdict) => void,
    now: () => number,
  ) {
    this.#context = context;
    this.#timeouts = timeouts;
    this.#judge = judge;
    this.#silence = new SilenceTimer(now, context.after, () => this.#abort.abort(silent()));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Sends the request and waits for the first events, which `next` returns again.
   * @throws ApiError for the client: the upstream's own, 504 if no event comes in time, 502 if the stream ends without one
   */
  async begin(upstream: Upstream, request: GenerationRequest): Promise<Batch> {
    const { signal } = this.#context;
    if (signal.aborted) this.#onDeparture();
    else signal.addEventListener('abort', this.#onDeparture, { once: true });
    try {
      const batches = await upstream.generate(request, { ...this.#context, signal: this.#abort.signal });
      this.#batches = batches[Symbol.asyncIterator]();
      const { value, done } = await this.#read(this.#timeouts.firstEventMs);
      if (done) throw interrupted();
      this.#first = value;
      return value;
    } catch (thrown) {
      this.#end(verdictOf(codeOf(thrown)));
      this.abort();
      throw thrown;
    }
  }

  next(): Promise<IteratorResult<Batch>> {
    const first = this.#first;
    if (first === null) return this.#read(this.#timeouts.idleMs);
    this.#first = null;
    return Promise.resolve({ value: first, done: false });
  }

  /** Ends the work of the upstream. */
  abort(): void {
    this.#abort.abort();
  }

  async #read(ms: number): Promise<IteratorResult<Batch>> {
    this.#silence.begin(ms);
    try {
      const result = await this.#batches!.next();
      this.#silence.end();
      const last = result.done ? undefined : result.value.at(-1);
      if (result.done || (last && isTerminal(last))) this.#silence.stop();
      if (last?.type === 'done') this.#end('success');
      else if (last?.type === 'error') this.#end(verdictOf(last.code));
      // After a terminal event, this second verdict has no effect.
      else if (result.done) this.#end('failure');
      return result;
    } catch (thrown) {
      this.#silence.stop();
      const cause = causeOf(this.#abort.signal, thrown);
      this.#end(verdictOf(codeOf(cause)));
      throw cause;
    }
  }

  /** A request that was aborted from outside says nothing about the upstream. */
  readonly #onDeparture = (): void => {
    this.#end('unknown');
    this.#abort.abort(this.#context.signal.reason);
  };

  #end(verdict: Verdict): void {
    // The platform keeps the listeners of a signal in memory until a full garbage collection.
    this.#context.signal.removeEventListener('abort', this.#onDeparture);
    this.#judge(verdict);
  }
}
