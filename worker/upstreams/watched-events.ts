import { ApiError } from '../../shared/errors.ts';
import { type GenerationEvent, isTerminal } from '../../shared/generation.ts';
import type { After } from '../timers/request-timers.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import type { EventStream } from './upstream.ts';
import { interrupted, silent } from './upstream-errors.ts';

type Events = readonly GenerationEvent[];

export interface EventTimeouts {
  /** Milliseconds from the acceptance to the first event. */
  readonly firstEventMs: number;
  /** Milliseconds between two signs of life, most of them events. */
  readonly idleMs: number;
}

export interface Watch {
  readonly timeouts: EventTimeouts;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly after: After;
  /** Ends this attempt at the upstream; its reason, if it is an ApiError, says why. */
  readonly abort: AbortController;
  /** Told how the stream ended: null = as it should, otherwise the code of the error. */
  readonly ended: (code: string | null) => void;
}

/** The events of one attempt at an upstream: an upstream that falls silent fails, and somebody hears how it ended. */
export class WatchedEvents implements AsyncIterableIterator<Events> {
  readonly #events: AsyncIterator<Events>;
  readonly #watch: Watch;
  readonly #silence: SilenceTimer;
  /** Read, but not yet asked for. */
  #first: Events | null = null;

  constructor(stream: EventStream, watch: Watch) {
    this.#events = stream[Symbol.asyncIterator]();
    this.#watch = watch;
    this.#silence = new SilenceTimer(watch.now, watch.after, () => watch.abort.abort(silent()));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Waits for the first batch, which `next` will give once more.
   * @throws ApiError 504 when it does not come in time, 502 when the stream ends without one
   */
  async peek(): Promise<Events> {
    const { value, done } = await this.#read(this.#watch.timeouts.firstEventMs);
    if (done) throw interrupted();
    this.#first = value;
    return value;
  }

  next(): Promise<IteratorResult<Events>> {
    const first = this.#first;
    if (first === null) return this.#read(this.#watch.timeouts.idleMs);
    this.#first = null;
    return Promise.resolve({ value: first, done: false });
  }

  async #read(ms: number): Promise<IteratorResult<Events>> {
    const { abort, ended } = this.#watch;
    this.#silence.begin(ms);
    try {
      const result = await this.#events.next();
      this.#silence.end();
      const last = result.done ? undefined : result.value.at(-1);
      if (result.done || (last && isTerminal(last))) this.#silence.stop();
      if (last?.type === 'done') ended(null);
      else if (last?.type === 'error') ended(last.code);
      // A stream that was complete has told so before.
      else if (result.done) ended('upstream_error');
      return result;
    } catch (thrown) {
      this.#silence.stop();
      const { reason }: { reason: unknown } = abort.signal;
      const cause = reason instanceof ApiError ? reason : thrown;
      ended(cause instanceof ApiError ? cause.code : 'internal_error');
      throw cause;
    }
  }
}
