import { errorOfEvent } from '../../shared/answer/error-answer.ts';
import { ApiError } from '../../shared/errors.ts';
import { type GenerationEvent, isTerminal } from '../../shared/generation.ts';
import { Tally } from '../../shared/tally.ts';
import type { Outcome, Reservation } from '../limits/admission.ts';
import type { EventStream } from '../upstreams/upstream.ts';

export interface RunOptions {
  readonly reservation: Reservation;
  /** Name of the upstream. */
  readonly upstream: string;
  /** Ends the upstream's work. */
  readonly abort: AbortController;
  readonly now: () => number;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

const endedEarly = (): ApiError =>
  new ApiError('upstream_error', 'The model server ended the stream before the completion had finished.');

/**
 * One generation under way: its events, the rule that exactly one terminal event ends them, the count of what was used,
 * and the reservation, settled once however it ends.
 */
export class Run {
  readonly tally: Tally;
  readonly #events: AsyncIterator<readonly GenerationEvent[]>;
  readonly #options: RunOptions;
  #failure: ApiError | null = null;
  /** The upstream has said itself how it ended. */
  #ended = false;
  #settled = false;

  constructor(stream: EventStream, options: RunOptions) {
    this.#events = stream[Symbol.asyncIterator]();
    this.#options = options;
    this.tally = new Tally(options.now);
    options.reservation.watch(() => ({ usage: this.tally.usage, upstream: options.upstream }));
  }

  /**
   * The next events, `done` as the last of all; never an `error`.
   * @throws ApiError after the last events when the generation failed
   */
  async next(): Promise<readonly GenerationEvent[]> {
    if (this.#failure) throw this.#failed(this.#failure);
    const batch = await this.#pull();
    const events: GenerationEvent[] = [];
    for (const event of batch) {
      this.tally.add(event);
      this.#ended ||= isTerminal(event);
      if (event.type === 'error') {
        this.#failure = errorOfEvent(event);
        break;
      }
      events.push(event);
      if (event.type === 'done') {
        this.#settle('completed', null);
        this.#readToEnd();
        break;
      }
    }
    if (events.length === 0 && this.#failure) throw this.#failed(this.#failure);
    return events;
  }

  /** The client has gone: ends the upstream's work at once and bills what was generated. */
  cancel(): void {
    if (this.#settled) return;
    this.#settle('cancelled', null);
    this.#options.abort.abort();
  }

  /** Something else went wrong while the answer was made. */
  fail(error: ApiError): void {
    this.#failed(error);
  }

  async #pull(): Promise<readonly GenerationEvent[]> {
    let result: IteratorResult<readonly GenerationEvent[]>;
    try {
      result = await this.#events.next();
    } catch (thrown) {
      const { signal } = this.#options.abort;
      const cause: unknown = signal.aborted && signal.reason instanceof ApiError ? signal.reason : thrown;
      throw this.#failed(cause instanceof ApiError ? cause : endedEarly());
    }
    if (result.done) throw this.#failed(endedEarly());
    return result.value;
  }

  /** Takes the end of the stream, so that the connection behind it can serve another request. */
  #readToEnd(): void {
    const end = this.#events.next().then(
      () => {},
      () => {},
    );
    this.#options.waitUntil(end);
  }

  #failed(error: ApiError): ApiError {
    this.#settle('failed', error.code);
    this.#options.abort.abort();
    return error;
  }

  #settle(status: Outcome['status'], errorCode: string | null): void {
    if (this.#settled) return;
    this.#settled = true;
    const { usage, finishReasons, firstTokenAt, queueMs } = this.tally;
    const { reservation, upstream, waitUntil } = this.#options;
    const inquire = !this.#ended;
    const outcome = { status, usage, errorCode, finishReasons, upstream, firstTokenAt, queueMs, inquire };
    waitUntil(reservation.settle(outcome));
  }
}
