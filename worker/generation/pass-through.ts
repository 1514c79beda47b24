import { withoutTags } from '../../shared/answer/account-mark.ts';
import type { ErrorCodeForm } from '../../shared/answer/answer-form.ts';
import { failedEnd } from '../../shared/answer/error-answer.ts';
import { ApiError } from '../../shared/errors.ts';
import { type UsageAccount, usageAccount } from '../../shared/generation.ts';
import type { Outcome } from '../limits/admission.ts';
import { type After, afterAlone } from '../timers/request-timers.ts';
import { SilenceTimer } from '../timers/silence-timer.ts';
import type { RoutedStream } from '../upstreams/routed-upstream.ts';
import { interrupted, malformed, silent } from '../upstreams/upstream-errors.ts';
import { NO_USAGE } from '../usage/usage-record.ts';
import type { RunOptions } from './run.ts';

export interface PassThroughOptions extends RunOptions {
  readonly after: After;
  readonly errorCode: ErrorCodeForm;
}

const NO_ACCOUNT: UsageAccount = {
  usage: NO_USAGE,
  finishReasons: [],
  ended: false,
  errorCode: null,
  queueMs: 0,
  firstTokenMs: null,
};

/** Milliseconds that the end of a stream may be ahead of its account. */
const PARSING_MS = 100;
/** Milliseconds in which a request tells that its caller has left, when its stream cannot be written any more. */
const LEAVING_MS = 5;

/** What is written behind a stream that broke off: ends whatever event, or account, it broke off in. */
const BREAK = '\n\n: -->\n\n';

/**
 * A written stream on its way to its caller. The platform moves the bytes: JavaScript runs for the accounts between them,
 * a few times a second, because each turn of it takes longer than all else that happens to an event here. They tell
 * what a run tells from events: what to bill, wherever it ends, and that somebody still generates.
 */
export class PassThrough {
  readonly #stream: RoutedStream;
  readonly #options: PassThroughOptions;
  readonly #silence: SilenceTimer;
  readonly #over = Promise.withResolvers<void>();
  #account = NO_ACCOUNT;
  #settled = false;

  constructor(stream: RoutedStream, options: PassThroughOptions) {
    const { reservation, upstream, now, after } = options;
    this.#stream = stream;
    this.#options = options;
    reservation.watch(() => ({ usage: this.#account.usage, upstream }));
    this.#silence = new SilenceTimer(now, after, () => void this.#ask());
  }

  /** To be called once: the stream as the caller gets it, which ends with a terminal event whatever happens. */
  body(): ReadableStream<Uint8Array> {
    const { readable, writable } = new IdentityTransformStream();
    this.#silence.begin(this.#stream.idleMs);
    this.#options.waitUntil(this.#pass(writable));
    const marked = new Response(readable, { headers: { 'content-type': 'text/html; charset=utf-8' } });
    const comments = (comment: Comment): void => {
      comment.remove();
      this.#told(comment.text);
    };
    return new HTMLRewriter().onDocument({ comments }).transform(marked).body!;
  }

  /** The client has gone: ends the upstream's work at once and bills what was generated. */
  cancel(): void {
    this.#settle('cancelled', null);
    this.#options.abort.abort();
  }

  /** Something went wrong on the way: what was generated is billed, and the caller gets to know. */
  fail(error: ApiError): void {
    this.#settle('failed', error.code);
    this.#options.abort.abort(error);
    this.#stream.stop(error);
  }

  async #pass(writable: WritableStream<Uint8Array>): Promise<void> {
    try {
      await this.#stream.body.pipeTo(writable, { preventClose: true, preventAbort: true });
      await this.#ended();
      await writable.close();
    } catch {
      if (!this.#settled) await pause(LEAVING_MS);
      const { reason }: { reason: unknown } = this.#options.abort.signal;
      const error = reason instanceof ApiError ? reason : interrupted();
      this.fail(error);
      const end = BREAK + withoutTags(failedEnd(error, this.#options.errorCode));
      const writer = writable.getWriter();
      const written = writer.write(new TextEncoder().encode(end)).then(() => writer.close());
      // A caller who has left takes nothing any more.
      await written.catch(() => {});
    }
  }

  /** The account of the end comes before the end itself, but has a parser to go through. */
  async #ended(): Promise<void> {
    await Promise.race([this.#over.promise, pause(PARSING_MS)]);
    if (!this.#account.ended) throw interrupted();
  }

  /** No account has come for long: the upstream has fallen silent, or its accounts wait behind what a slow caller has not read. */
  async #ask(): Promise<void> {
    const before = this.#account;
    const account = await this.#stream.account().catch(() => null);
    // Meanwhile it may have been heard of, or have ended.
    if (this.#settled || this.#account !== before) return;
    const told = before.usage.completionTokens;
    const lives = account && (account.ended || account.usage.completionTokens > told);
    // Upstreams end, too, when they take their reader for gone: what ends a stream is the account that comes with it.
    if (lives) this.#take({ ...account, ended: false });
    else this.fail(silent());
  }

  #told(text: string): void {
    const account = accountIn(text);
    if (account === null) this.fail(malformed());
    else this.#take(account);
  }

  #take(account: UsageAccount): void {
    if (this.#settled) return;
    const { ended, errorCode } = account;
    this.#account = account;
    this.#silence.begin(this.#stream.idleMs);
    if (ended) this.#settle(errorCode === null ? 'completed' : 'failed', errorCode);
  }

  #settle(status: Outcome['status'], errorCode: string | null): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#silence.stop();
    this.#over.resolve();
    const { usage, finishReasons, queueMs, firstTokenMs, ended } = this.#account;
    const { reservation, upstream, waitUntil } = this.#options;
    const firstTokenAt = firstTokenMs === null ? null : this.#stream.askedAt + firstTokenMs;
    if (status !== 'cancelled') this.#stream.ended(errorCode);
    const outcome = {
      status,
      usage,
      errorCode,
      finishReasons,
      upstream,
      firstTokenAt,
      queueMs,
      inquire: !ended,
    };
    waitUntil(reservation.settle(outcome));
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => void afterAlone(ms, resolve));

function accountIn(text: string): UsageAccount | null {
  try {
    return usageAccount.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
