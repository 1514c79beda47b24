import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { FairMutex, type LockCaller } from '../process/fair-mutex.ts';
import { SupervisedChild, THREAD_MEMORY, threadLife } from '../process/supervised-child.ts';
import type { EncodeOptions, TokenizerParts } from './tokenizer.ts';

/** Work for the thread. It gets the next job after the result of the last. */
export type TokenizerJob =
  | { readonly kind: 'encode'; readonly text: string; readonly options: EncodeOptions }
  | {
      readonly kind: 'tokenize';
      readonly text: string;
      readonly options: EncodeOptions;
      readonly maxTokens: number;
      /** Also return the tokens' texts. */
      readonly withStrings: boolean;
      readonly withBytes: boolean;
    }
  | { readonly kind: 'detokenize'; readonly tokens: readonly number[] };

/** UTF-8 of JSON, or the number of tokens if there are too many. */
type TokenizeReply = Uint8Array<ArrayBuffer> | number;

interface Results {
  readonly encode: Int32Array<ArrayBuffer>;
  readonly tokenize: TokenizeReply;
  readonly detokenize: Uint8Array<ArrayBuffer>;
}

export type TokenizerResult = { readonly value: Results[keyof Results] } | { readonly failure: string };

export interface TokenizerThreadData {
  readonly parts: TokenizerParts;
  /** Yields the CPU to all other threads of the machine. */
  readonly background: boolean;
}

/** The job in the thread, at most one. */
const JOB = 0;

const ended = () => new Error('the tokenizer thread ended');

/** Bytes of a token id in JSON, about. */
const BYTES_PER_ID = 6;

/** Returns the bytes of a job's request, about: all work on it grows with them. */
const receivedBytes = (job: TokenizerJob): number =>
  job.kind === 'detokenize' ? BYTES_PER_ID * job.tokens.length : job.text.length;

/**
 * Runs a tokenizer in a thread of its own. Tenants share it by weight and bytes. The thread starts with the
 * first job.
 */
export class TokenizerThread {
  readonly #thread: SupervisedChild<TokenizerJob, TokenizerResult, TokenizerResult>;
  readonly #mutex = new FairMutex();
  readonly #rest: (bytes: number) => Promise<unknown>;
  /** Resolves when the next job may start. */
  #rested: Promise<unknown> = Promise.resolve();
  /** Aborted on `close`, for callers that still wait. */
  #closing = new AbortController();

  /** @param rest returns the pause after a job, given the bytes of its request and answer */
  constructor(data: TokenizerThreadData, rest: (bytes: number) => Promise<unknown> = async () => {}) {
    const options = { workerData: data, resourceLimits: THREAD_MEMORY };
    this.#thread = new SupervisedChild({
      spawn: () => threadLife(new Worker(new URL('./tokenizer-thread-entry.ts', import.meta.url), options)),
      onReport: (result) => this.#thread.settle(JOB, result),
      deathError: ended,
      background: true,
    });
    this.#rest = rest;
  }

  /** @throws the signal's reason if the client disconnects before its turn */
  async run<Kind extends keyof Results>(
    job: TokenizerJob & { readonly kind: Kind },
    caller: LockCaller,
  ): Promise<Results[Kind]> {
    const signal = AbortSignal.any([caller.signal, this.#closing.signal]);
    const done = Promise.withResolvers<Results[Kind]>();
    const received = receivedBytes(job);
    const work = async () => {
      await this.#rested;
      signal.throwIfAborted();
      const result = await this.#send(job);
      this.#rested = this.#rest(received + (typeof result === 'number' ? 0 : result.byteLength));
      done.resolve(result as Results[Kind]);
      // A request with several texts brings its next one before another tenant's turn is decided.
      await setImmediate();
    };
    this.#mutex.run({ ...caller, signal }, work, received).catch(done.reject);
    return done.promise;
  }

  /** Fails the waiting jobs. A later job starts the thread again. */
  async close(): Promise<void> {
    this.#closing.abort(ended());
    this.#closing = new AbortController();
    await this.#thread.close(ended());
  }

  async #send(job: TokenizerJob): Promise<Results[keyof Results]> {
    if (!this.#thread.start()) throw ended();
    const result = await this.#thread.request(JOB, job);
    if ('failure' in result) throw new Error(result.failure);
    return result.value;
  }
}

/** A text of so many bytes takes about 60 ms. */
const MAX_SHORT_BYTES = 2 ** 16;

/** Runs long jobs in one thread and others in another, so that a short text never waits for a long one. */
export class TokenizerThreads {
  readonly #short: TokenizerThread;
  readonly #long: TokenizerThread;

  /** @param options as for each of the threads */
  constructor(...options: ConstructorParameters<typeof TokenizerThread>) {
    this.#short = new TokenizerThread(...options);
    this.#long = new TokenizerThread(...options);
  }

  /** @throws the signal's reason if the client disconnects before its turn */
  run: TokenizerThread['run'] = (job, caller) =>
    (receivedBytes(job) > MAX_SHORT_BYTES ? this.#long : this.#short).run(job, caller);

  /** Fails the waiting jobs. A later job starts its thread again. */
  async close(): Promise<void> {
    await Promise.all([this.#short.close(), this.#long.close()]);
  }
}
