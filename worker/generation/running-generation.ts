import { ApiError, errorFromWire, toApiError } from '@continuo/shared/errors.ts';
import { type GenerationEvent, isTerminal } from '@continuo/shared/generation.ts';
import { UsageTally } from '@continuo/shared/usage-tally.ts';
import type { Outcome, Reservation } from '../limits/reservation.ts';
import type { EventBatches } from '../upstreams/upstream.ts';

export interface GenerationOptions {
  readonly reservation: Pick<Reservation, 'watch' | 'settle'>;
  /** Name of the upstream. */
  readonly upstream: string;
  /** Ends the upstream's work. */
  readonly abort: AbortController;
  /** Runs before the first tokens are relayed, with the tokens of each prompt. @throws ApiError to refuse the request */
  readonly onPromptTokens: (promptTokens: readonly number[]) => Promise<void>;
  readonly now: () => number;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

const endedEarly = (): ApiError =>
  new ApiError('upstream_error', 'The model server ended the stream before the completion had finished.');

/**
 * One generation in progress. Checks that exactly one terminal event ends it, counts the usage, and settles the reservation
 * once.
 */
export class RunningGeneration {
  readonly tally: UsageTally;
  readonly #batches: AsyncIterator<readonly GenerationEvent[]>;
  readonly #options: GenerationOptions;
  #failure: ApiError | null = null;
  #accepted = false;
  /** The terminal event has been read. */
  #ended = false;
  #settled = false;

  constructor(batches: EventBatches, options: GenerationOptions) {
    this.#batches = batches[Symbol.asyncIterator]();
    this.#options = options;
    this.tally = new UsageTally(options.now);
    options.reservation.watch(() => ({ usage: this.tally.usage, upstream: options.upstream }));
  }

  /**
   * Returns the next events; `done` is the last one. Never returns an `error` event.
   * @throws ApiError if the generation failed, after all events before the failure
   */
  async next(): Promise<readonly GenerationEvent[]> {
    if (this.#failure) throw this.#failed(this.#failure);
    const batch = await this.#read();
    if (!this.#accepted) await this.#accept(batch);
    const end = batch.findIndex(isTerminal);
    if (end < 0) {
      this.#count(batch);
      return batch;
    }
    const events = batch.slice(0, end + 1);
    this.#count(events);
    this.#ended = true;
    const last = batch[end];
    if (last?.type !== 'error') {
      this.#settle('completed', null);
      this.#readToEnd();
      return events;
    }
    this.#failure = errorFromWire(last);
    if (end === 0) throw this.#failed(this.#failure);
    return events.slice(0, end);
  }

  /** Refuses a request that exceeds a limit, before anything of it counts. */
  async #accept(batch: readonly GenerationEvent[]): Promise<void> {
    const accepted = batch.find((event) => event.type === 'accepted');
    if (!accepted) return;
    this.#accepted = true;
    try {
      await this.#options.onPromptTokens(accepted.promptTokens);
    } catch (thrown) {
      const error = toApiError(thrown);
      // What the upstream has computed until the abort is not billed.
      this.#settle('failed', error.code, false);
      throw this.#failed(error);
    }
  }

  /** The client has disconnected: ends the upstream's work and settles what was generated. */
  cancel(): void {
    if (this.#settled) return;
    this.#settle('cancelled', null);
    this.#options.abort.abort();
  }

  /** The answer failed outside the upstream: ends the upstream's work and settles what was generated. */
  fail(error: ApiError): void {
    this.#failed(error);
  }

  #count(events: readonly GenerationEvent[]): void {
    for (const event of events) this.tally.add(event);
  }

  async #read(): Promise<readonly GenerationEvent[]> {
    let result: IteratorResult<readonly GenerationEvent[]>;
    try {
      result = await this.#batches.next();
    } catch (thrown) {
      const { signal } = this.#options.abort;
      const cause: unknown = signal.aborted && signal.reason instanceof ApiError ? signal.reason : thrown;
      throw this.#failed(cause instanceof ApiError ? cause : endedEarly());
    }
    if (result.done) throw this.#failed(endedEarly());
    return result.value;
  }

  /** Reads past the terminal event, so that the connection can be reused. */
  #readToEnd(): void {
    const end = this.#batches.next().then(
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

  /** Without a terminal event the upstream may have generated more than was read. */
  #settle(status: Outcome['status'], errorCode: string | null, inquire = !this.#ended): void {
    if (this.#settled) return;
    this.#settled = true;
    const { usage, finishReasons, firstTokenAt, queueMs } = this.tally;
    const { reservation, upstream, waitUntil } = this.#options;
    const outcome = { status, usage, errorCode, finishReasons, upstream, firstTokenAt, queueMs, inquire };
    waitUntil(reservation.settle(outcome));
  }
}
