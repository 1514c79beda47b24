import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';

/** A text for the encoder thread and the ids that come back. */
export interface EncodeJob {
  readonly job: number;
  readonly text: string;
  readonly options: EncodeOptions;
}
export type EncodeResult =
  | { readonly job: number; readonly ids: Int32Array }
  | { readonly job: number; readonly failure: string };

export interface EncoderThreadData {
  readonly directory: string;
  readonly markers: ReadonlySet<string>;
}

interface Waiting {
  resolve(ids: ArrayLike<number>): void;
  reject(error: Error): void;
}

/**
 * Texts up to this length are tokenised at once (a few milliseconds), longer ones in the encoder thread. Between so many
 * characters of short texts the event loop turns: a request may bring hundreds of them.
 */
const INLINE_LENGTH = 4096;

/** Tokenises without holding up the thread it is called on. */
export class Encoder {
  readonly #tokenizer: Tokenizer;
  readonly #data: EncoderThreadData;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | null = null;
  #jobs = 0;
  /** Characters tokenised since the event loop was last waited for. */
  #inline = 0;
  #turn: Promise<void> | null = null;

  constructor(tokenizer: Tokenizer, data: EncoderThreadData) {
    this.#tokenizer = tokenizer;
    this.#data = data;
  }

  async encode(text: string, options: EncodeOptions): Promise<ArrayLike<number>> {
    if (text.length <= INLINE_LENGTH) {
      while (this.#inline + text.length > INLINE_LENGTH) await this.#nextTurn();
      this.#inline += text.length;
      return this.#tokenizer.encode(text, options);
    }
    const thread = this.#running();
    this.#jobs += 1;
    const job: EncodeJob = { job: this.#jobs, text, options };
    return new Promise((resolve, reject) => {
      this.#waiting.set(job.job, { resolve, reject });
      thread.ref(); // keeps the process alive only while someone waits
      thread.postMessage(job);
    });
  }

  async close(): Promise<void> {
    await this.#thread?.terminate();
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
    const thread = new Worker(new URL('./encoder-thread.ts', import.meta.url), { workerData: this.#data });
    thread.unref();
    thread.on('message', (result: EncodeResult) => this.#settle(result));
    thread.on('error', () => undefined); // 'exit' follows
    thread.on('exit', () => {
      this.#thread = null;
      for (const waiting of this.#waiting.values()) waiting.reject(new Error('the encoder thread ended'));
      this.#waiting.clear();
    });
    this.#thread = thread;
    return thread;
  }

  #settle(result: EncodeResult): void {
    const waiting = this.#waiting.get(result.job);
    this.#waiting.delete(result.job);
    if (this.#waiting.size === 0) this.#thread?.unref();
    if ('ids' in result) waiting?.resolve(result.ids);
    else waiting?.reject(new Error(result.failure));
  }
}
