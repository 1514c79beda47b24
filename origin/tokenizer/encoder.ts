import { setImmediate } from 'node:timers/promises';
import type { LockCaller } from '../process/fair-mutex.ts';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';
import { TokenizerThread } from './tokenizer-thread.ts';

/**
 * Texts up to this length are encoded inline, in a few milliseconds; longer ones in a tokenizer thread. It also bounds the
 * characters encoded inline before the event loop runs, because a request may have hundreds of short texts.
 */
const INLINE_LENGTH = 4096;

/** Encodes prompts without blocking the calling thread. */
export class Encoder {
  readonly #tokenizer: Tokenizer;
  readonly #thread: TokenizerThread;
  /** Characters encoded inline since the event loop last ran. */
  #inline = 0;
  #turn: Promise<void> | null = null;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
    this.#thread = new TokenizerThread({ parts: tokenizer.parts, background: false });
  }

  /**
   * Encodes a text. Tenants alternate with long texts.
   * @throws the signal's reason if the client disconnects first
   */
  async encode(text: string, options: EncodeOptions, caller: LockCaller): Promise<ArrayLike<number>> {
    if (text.length > INLINE_LENGTH) return this.#thread.run({ kind: 'encode', text, options }, caller);
    while (this.#inline + text.length > INLINE_LENGTH) await this.#nextTurn();
    this.#inline += text.length;
    return this.#tokenizer.encode(text, options);
  }

  /** Fails the waiting texts. A later text starts the thread again. */
  close(): Promise<void> {
    return this.#thread.close();
  }

  #nextTurn(): Promise<void> {
    this.#turn ??= setImmediate().then(() => {
      this.#inline = 0;
      this.#turn = null;
    });
    return this.#turn;
  }
}
