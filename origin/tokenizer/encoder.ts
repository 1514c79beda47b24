import { setImmediate } from 'node:timers/promises';
import { FairMutex, type LockCaller } from '../process/fair-mutex.ts';
import type { EncodeOptions, Tokenizer } from './tokenizer.ts';
import { TokenizerThreads } from './tokenizer-thread.ts';

/**
 * Texts up to this length are encoded inline, in a few milliseconds; longer ones in tokenizer threads. It
 * also bounds the characters encoded inline before the event loop runs, because a request may have hundreds
 * of short texts.
 */
const INLINE_LENGTH = 4096;

/** Encodes prompts without blocking the calling thread. */
export class Encoder {
  readonly #tokenizer: Tokenizer;
  readonly #threads: TokenizerThreads;
  /** For texts that are encoded inline. */
  readonly #turns = new FairMutex();
  /** Characters encoded inline since the event loop last ran for them. */
  #inline = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
    this.#threads = new TokenizerThreads({ parts: tokenizer.parts, background: false });
  }

  /**
   * Encodes a text. Tenants get their weighted shares, by characters.
   * @throws the signal's reason if the client disconnects first
   */
  async encode(text: string, options: EncodeOptions, caller: LockCaller): Promise<ArrayLike<number>> {
    const { length } = text;
    if (length > INLINE_LENGTH) return this.#threads.run({ kind: 'encode', text, options }, caller);
    const encodeInline = async () => {
      if (this.#inline + length > INLINE_LENGTH) {
        await setImmediate();
        this.#inline = 0;
      }
      this.#inline += length;
      return this.#tokenizer.encode(text, options);
    };
    return this.#turns.run(caller, encodeInline, length);
  }

  /** Fails the waiting texts. A later text starts its thread again. */
  close(): Promise<void> {
    return this.#threads.close();
  }
}
