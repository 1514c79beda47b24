import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { FairMutex, type LockCaller } from '../fair-mutex.ts';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';

/** A text for the encoder thread. The next one is sent after its result. */
export interface EncodeJob {
  readonly text: string;
  readonly options: EncodeOptions;
}
export type EncodeResult = { readonly ids: Int32Array } | { readonly failure: string };

interface PendingJob {
  resolve(ids: ArrayLike<number>): void;
  reject(error: Error): void;
}

/**
 * Texts up to this length are encoded inline, in a few milliseconds; longer ones in the encoder thread. It also bounds the
 * characters encoded inline before the event loop runs, because a request may have hundreds of short texts.
 */
const INLINE_LENGTH = 4096;

const ended = () => new Error('the encoder thread ended');

/** Encodes text without blocking the calling thread. */
export class Encoder {
  readonly #tokenizer: Tokenizer;
  readonly #mutex = new FairMutex();
  #thread: Worker | null = null;
  /** The job in the thread, at most one. */
  #waiting: PendingJob | null = null;
  /** Aborted on `close`, for callers that still wait. */
  #closing = new AbortController();
  /** Characters encoded inline since the event loop last ran. */
  #inline = 0;
  #turn: Promise<void> | null = null;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /**
   * Encodes a text. Tenants alternate with long texts.
   * @throws the signal's reason if the client disconnects first
   */
  async encode(text: string, options: EncodeOptions, caller: LockCaller): Promise<ArrayLike<number>> {
    if (text.length <= INLINE_LENGTH) {
      while (this.#inline + text.length > INLINE_LENGTH) await this.#nextTurn();
      this.#inline += text.length;
      return this.#tokenizer.encode(text, options);
    }
    const signal = AbortSignal.any([caller.signal, this.#closing.signal]);
    return this.#mutex.run({ ...caller, signal }, () => this.#inThread({ text, options }));
  }

  /** Fails the waiting texts. A later text starts the thread again. */
  async close(): Promise<void> {
    this.#closing.abort(ended());
    this.#closing = new AbortController();
    await this.#thread?.terminate();
  }

  #inThread(job: EncodeJob): Promise<ArrayLike<number>> {
    const thread = this.#running();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      thread.ref(); // the process stays alive only while a text waits
      thread.postMessage(job);
    });
  }

  #nextTurn(): Promise<void> {
    this.#turn ??= setImmediate().then(() => {
      this.#inline = 0;
      this.#turn = null;
    });
    return this.#turn;
  }

  /** Starts the thread with the first long text, and again if it died. */
  #running(): Worker {
    if (this.#thread) return this.#thread;
    const thread = new Worker(new URL('./encoder-thread.ts', import.meta.url), {
      workerData: this.#tokenizer.parts,
    });
    thread.unref();
    thread.on('message', (result: EncodeResult) => this.#settle(result));
    thread.on('error', () => undefined); // 'exit' follows
    thread.on('exit', () => {
      this.#thread = null;
      this.#waiting?.reject(ended());
      this.#waiting = null;
    });
    this.#thread = thread;
    return thread;
  }

  #settle(result: EncodeResult): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#thread?.unref();
    if ('ids' in result) waiting?.resolve(result.ids);
    else waiting?.reject(new Error(result.failure));
  }
}
