import { ApiError } from '@continuo/shared/errors.ts';
import { type GenerationEvent, isTerminal } from '@continuo/shared/generation.ts';
import type { After } from '../timers/request-timers.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import type { EventBatches } from './upstream.ts';
import { interrupted, silent } from './upstream-errors.ts';

type Batch = readonly GenerationEvent[];

export interface EventTimeouts {
  /** Milliseconds from the acceptance to the first event. */
  readonly firstEventMs: number;
  /** Milliseconds between two reads, of events or heartbeats. */
  readonly idleMs: number;
}

export interface WatchOptions {
  readonly timeouts: EventTimeouts;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly after: After;
  /** Ends this attempt at the upstream. If its reason is an ApiError, it is the error of the stream. */
  readonly abort: AbortController;
  /** Called when the stream has ended: null = with `done`, otherwise the error code. */
  readonly onEnd: (code: string | null) => void;
}

/** The events of one attempt at an upstream. Fails if the upstream is silent for too long, and reports the end. */
export class WatchedEvents implements AsyncIterableIterator<Batch> {
  readonly #batches: AsyncIterator<Batch>;
  readonly #options: WatchOptions;
  readonly #silence: SilenceTimer;
  /** Read by `peek`, but not yet returned by `next`. */
  #first: Batch | null = null;

  constructor(batches: EventBatches, options: WatchOptions) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#options = options;
    this.#silence = new SilenceTimer(options.now, options.after, () => options.abort.abort(silent()));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Waits for the first batch, which `next` returns again.
   * @throws ApiError 504 if it does not come in time, 502 if the stream ends without one
   */
  async peek(): Promise<Batch> {
    const { value, done } = await this.#read(this.#options.timeouts.firstEventMs);
    if (done) throw interrupted();
    this.#first = value;
    return value;
  }

  next(): Promise<IteratorResult<Batch>> {
    const first = this.#first;
    if (first === null) return this.#read(this.#options.timeouts.idleMs);
    this.#first = null;
    return Promise.resolve({ value: first, done: false });
  }

  async #read(ms: number): Promise<IteratorResult<Batch>> {
    const { abort, onEnd } = this.#options;
    this.#silence.begin(ms);
    try {
      const result = await this.#batches.next();
      this.#silence.end();
      const last = result.done ? undefined : result.value.at(-1);
      if (result.done || (last && isTerminal(last))) this.#silence.stop();
      if (last?.type === 'done') onEnd(null);
      else if (last?.type === 'error') onEnd(last.code);
      // After a terminal event this second call has no effect.
      else if (result.done) onEnd('upstream_error');
      return result;
    } catch (thrown) {
      this.#silence.stop();
      const { reason }: { reason: unknown } = abort.signal;
      const cause = reason instanceof ApiError ? reason : thrown;
      onEnd(cause instanceof ApiError ? cause.code : 'internal_error');
      throw cause;
    }
  }
}
