import type { Hold } from '@continuo/limits/hold.ts';
import type { Outcome } from '@continuo/limits/outcome.ts';
import { NO_USAGE } from '@continuo/limits/usage/usage-record.ts';
import { ApiError, errorFromWire, toApiError } from '@continuo/shared/errors.ts';
import {
  type EventOf,
  type GenerationEvent,
  isTerminal,
  needsCompilation,
} from '@continuo/shared/generation.ts';
import type { After } from '@continuo/shared/time-limit.ts';
import { UsageTally } from '@continuo/shared/usage.ts';
import { type ParsedCompletion, withOriginalFieldNames } from '../dialects/parsed-completion.ts';
import type { EventBatches } from '../upstreams/upstream.ts';
import { causeOf } from '../upstreams/upstream-errors.ts';
import type { Envelope } from './format/completion-json.ts';

type Batch = readonly GenerationEvent[];

export interface GenerationOptions {
  readonly parsed: ParsedCompletion;
  readonly envelope: Envelope;
  readonly hold: Pick<Hold, 'watch' | 'spend' | 'end' | 'block'>;
  /** Sends the request. `onAccepted` is for upstreams without usage accounts: see UpstreamContext. */
  readonly send: (signal: AbortSignal, onAccepted: (promptTokens: number) => void) => Promise<EventBatches>;
  /** The upstream that was tried last. */
  readonly upstream: { readonly name: string };
  /** Runs with each prompt's tokens before any are relayed. @throws ApiError to refuse the request */
  readonly onPromptTokens: (promptTokens: readonly number[]) => Promise<void>;
  /** Aborts when the client disconnects. */
  readonly client: AbortSignal;
  /** Milliseconds until the generation fails. */
  readonly timeoutMs: number;
  readonly after: After;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

const endedEarly = (): ApiError =>
  new ApiError('upstream_error', 'The model server ended the stream before the completion had finished.');

const deadlinePassed = (): ApiError =>
  new ApiError('upstream_timeout', 'The completion did not finish in time.');

/**
 * How often an open generation asks whether its key is blocked. An answer may be 1 s old, or 1.5 s
 * with many isolates, and while one generation asks, others get the old one. So each ends within 2 s of the
 * block.
 */
const BLOCK_CHECK_MS = 450;

/** Returns the `done` event if it is the last one. */
export const doneOf = (events: Batch): EventOf<'done'> | undefined => {
  const last = events.at(-1);
  return last?.type === 'done' ? last : undefined;
};

/**
 * One generation, from its request to an upstream to its end: `done`, a failure, a disconnected client or the
 * deadline. Checks that exactly one terminal event ends it, counts the usage, and ends its hold once.
 */
export class Generation {
  readonly parsed: ParsedCompletion;
  readonly envelope: Envelope;
  readonly tally: UsageTally;
  /** The first events. Rejects with an ApiError if the generation fails before them. */
  readonly first: Promise<Batch>;
  readonly #options: GenerationOptions;
  /** Ends the upstream's work. */
  readonly #abort = new AbortController();
  readonly #clearDeadline: () => void;
  #clearBlockCheck: () => void;
  readonly #accepted = Promise.withResolvers<void>();
  #acceptedTokens = 0;
  /** Null while the upstream has not begun to answer. */
  #batches: AsyncIterator<Batch> | null = null;
  #promptsCounted = false;
  /** Thrown by the next call of `next`. */
  #failure: ApiError | null = null;
  #departed = false;
  /** The terminal event has been read. */
  #ended = false;
  #settled = false;

  constructor(options: GenerationOptions) {
    this.parsed = options.parsed;
    this.envelope = options.envelope;
    this.#options = options;
    this.tally = new UsageTally(options.now);
    this.#clearDeadline = options.after(options.timeoutMs, () => this.#stop(deadlinePassed()));
    this.#clearBlockCheck = options.after(BLOCK_CHECK_MS, () => this.#checkBlock());
    // The client may have disconnected during admission.
    if (options.client.aborted) this.cancel();
    else options.client.addEventListener('abort', this.cancel);
    this.first = this.#start().catch((thrown: unknown) => this.#refused(thrown));
  }

  /**
   * Resolves when the upstream has checked what takes seconds: constraints, patterns and images. It checks
   * all else at once.
   * @throws ApiError if it refused the request
   */
  async checked(): Promise<void> {
    const { generation } = this.parsed;
    if (needsCompilation(generation) || generation.images)
      await Promise.race([this.first, this.#accepted.promise]);
  }

  /**
   * Returns the next events; `done` is the last one. Never returns an `error` event.
   * @throws ApiError if the generation failed, after all events before the failure
   */
  async next(): Promise<Batch> {
    if (this.#failure) throw this.#failed(this.#failure);
    const batch = await this.#read();
    await this.#checkPrompts(batch);
    const events = await this.#take(batch);
    const last = events.at(-1);
    if (last?.type !== 'done' && last?.type !== 'error') return events;
    this.#ended = true;
    if (last.type === 'done') {
      this.#settle('completed', null);
      if (last.usage.limitReached === undefined) this.#readToEnd();
      else this.#abort.abort();
      return events;
    }
    this.#failure = errorFromWire(last);
    if (events.length === 1) throw this.#failed(this.#failure);
    return events.slice(0, -1);
  }

  /** The client has disconnected: ends the upstream's work and settles what was generated. */
  readonly cancel = (): void => {
    this.#departed = true;
    if (this.#settled) return;
    // Before the first events, the upstream's answer to the abort settles.
    if (this.#batches) this.#settle('cancelled', null);
    this.#abort.abort();
  };

  /** The response failed outside the upstream: ends the upstream's work and settles what was generated. */
  fail(error: ApiError): void {
    this.#failed(error);
  }

  async #start(): Promise<Batch> {
    const { send, hold, upstream } = this.#options;
    const batches = await send(this.#abort.signal, (promptTokens) => {
      this.#acceptedTokens = promptTokens;
      this.#accepted.resolve();
    });
    this.#batches = batches[Symbol.asyncIterator]();
    hold.watch({ tally: this.tally, upstream });
    return this.next();
  }

  #refused(thrown: unknown): never {
    const cause = causeOf(this.#abort.signal, thrown);
    if (this.#departed) this.#settle('cancelled', null);
    else this.#settle('failed', toApiError(cause).code);
    this.#abort.abort();
    throw cause instanceof ApiError ? withOriginalFieldNames(cause, this.parsed) : cause;
  }

  /** Ends the upstream's work; the next read fails with this error. */
  #stop(error: ApiError): void {
    this.#abort.abort(error);
    // If the client has stopped reading, no read is pending that the signal could end.
    if (this.#batches) this.#settle('failed', error.code);
  }

  /** Goes on until the generation has ended, independent of its events. */
  #checkBlock(): void {
    void this.#options.hold.block().then((error) => {
      if (this.#settled) return;
      if (error) this.#stop(error);
      else this.#clearBlockCheck = this.#options.after(BLOCK_CHECK_MS, () => this.#checkBlock());
    });
  }

  async #read(): Promise<Batch> {
    const result = await this.#batches!.next().catch((thrown: unknown) => {
      const cause = causeOf(this.#abort.signal, thrown);
      throw this.#failed(cause instanceof ApiError ? cause : endedEarly());
    });
    if (result.done) throw this.#failed(endedEarly());
    return result.value;
  }

  /** Counts the events and returns them: up to the terminal one, or as many as a limit has room for. */
  async #take(batch: Batch): Promise<Batch> {
    const { hold } = this.#options;
    const isLast = batch.some(isTerminal);
    for (const [index, event] of batch.entries()) {
      const spending = hold.spend(this.tally.tokensWith(event), isLast);
      const limit = spending && (await this.#spent(spending));
      if (limit instanceof ApiError && index === 0) throw this.#failed(limit);
      if (limit instanceof ApiError) this.#failure = limit;
      if (limit !== null) {
        const end = limit instanceof ApiError ? [] : this.#endAt(limit);
        return [...batch.slice(0, index), ...end];
      }
      this.tally.add(event);
      if (isTerminal(event)) return batch.slice(0, index + 1);
    }
    return batch;
  }

  /** Returns the limit that has no room for more tokens, or the error of a request that must not go on. */
  async #spent(spending: Promise<string | null>): Promise<string | ApiError | null> {
    const limit = await spending.catch(toApiError);
    // While it waited, its key may have been blocked.
    return this.#settled ? toApiError(causeOf(this.#abort.signal, endedEarly())) : limit;
  }

  /** Ends all choices at a limit of the tenant. What the upstream has generated ahead is not billed. */
  #endAt(limitReached: string): Batch {
    const { tally } = this;
    const { prompts, choices } = this.parsed.generation;
    const open = Array.from({ length: prompts.length * choices }, (_, choice) => choice).filter(
      (choice) => tally.unfinished(choice) !== null,
    );
    const finishes = open.map((choice): GenerationEvent => {
      const completionTokens = tally.unfinished(choice) ?? 0;
      return { type: 'finish', choice, reason: 'length', stopReason: null, completionTokens };
    });
    for (const finish of finishes) tally.add(finish);
    const generationMs = tally.firstTokenAt === null ? 0 : this.#options.now() - tally.firstTokenAt;
    const done: GenerationEvent = {
      type: 'done',
      usage: { ...tally.usage, limitReached },
      timings: { queueMs: tally.queueMs, promptMs: 0, generationMs },
    };
    tally.add(done);
    return [...finishes, done];
  }

  /** Refuses a request that exceeds a limit, before anything of it counts. */
  async #checkPrompts(batch: Batch): Promise<void> {
    const accepted = this.#promptsCounted ? undefined : batch.find((event) => event.type === 'accepted');
    if (!accepted) return;
    this.#promptsCounted = true;
    try {
      await this.#options.onPromptTokens(accepted.promptTokens);
    } catch (thrown) {
      const error = toApiError(thrown);
      // What the upstream has computed until the abort is not billed.
      this.#settle('failed', error.code, false);
      throw this.#failed(error);
    }
  }

  /** Reads past the terminal event, so that the connection can be reused. */
  #readToEnd(): void {
    this.#options.waitUntil(this.#batches!.next().catch(() => {}));
  }

  #failed(error: ApiError): ApiError {
    this.#settle('failed', error.code);
    this.#abort.abort();
    return error;
  }

  /**
   * Without a terminal event, the upstream may have generated more than was read. If the client disconnected
   * before the first events, the upstream may have computed a part of the prompt: its usage account tells, or
   * else `onAccepted`.
   */
  #settle(status: Outcome['status'], errorCode: string | null, inquire?: boolean): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#clearDeadline();
    this.#clearBlockCheck();
    const { client, hold, upstream } = this.#options;
    // The platform keeps the listeners of a signal in memory until a full garbage collection.
    client.removeEventListener('abort', this.cancel);
    const { usage, finishReasons, firstTokenAt, queueMs } = this.tally;
    const common = { status, errorCode, finishReasons, upstream: upstream.name, firstTokenAt };
    const cancelled = status === 'cancelled';
    const outcome: Outcome = this.#batches
      ? { ...common, usage, queueMs, inquire: inquire ?? !this.#ended }
      : {
          ...common,
          usage: { ...NO_USAGE, promptTokens: cancelled ? this.#acceptedTokens : 0 },
          inquire: cancelled,
        };
    hold.end(outcome);
  }
}
