import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { FairMutex, type LockCaller } from '../fair-mutex.ts';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';

/** A text for the encoder thread and the ids that come back, before the next text is sent. */
export interface EncodeJob {
  readonly text: string;
  readonly options: EncodeOptions;
}
export type EncodeResult = { readonly ids: Int32Array } | { readonly failure: string };

interface Waiting {
  resolve(ids: ArrayLike<number>): void;
  reject(error: Error): void;
}

/**
 * Texts up to this length are tokenised at once (a few milliseconds), longer ones in the encoder thread. Between so many
 * characters of short texts the event loop turns: a request may bring hundreds of them.
 */
const INLINE_LENGTH = 4096;

const ended = () => new Error('the encoder thread ended');

/** Tokenises without holding up the thread it is called on. */
export class Encoder {
  readonly #tokenizer: Tokenizer;
  readonly #mutex = new FairMutex();
  #thread: Worker | null = null;
  /** Who waits for the thread, which has one text at a time. */
  #waiting: Waiting | null = null;
  /** Aborted for those who have a turn to come when it is closed. */
  #closing = new AbortController();
  /** Characters tokenised since the event loop was last waited for. */
  #inline = 0;
  #turn: Promise<void> | null = null;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /**
   * Tenants take turns with long texts.
   * @throws the signal's reason, should the caller leave before its turn
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

  /** Whatever waits fails; a later text starts the thread again. */
  async close(): Promise<void> {
    this.#closing.abort(ended());
    this.#closing = new AbortController();
    await this.#thread?.terminate();
  }

  #inThread(job: EncodeJob): Promise<ArrayLike<number>> {
    const thread = this.#running();
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      thread.ref(); // keeps the process alive only while someone waits
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

  /** Started with the first long text, and again should it have died. */
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
