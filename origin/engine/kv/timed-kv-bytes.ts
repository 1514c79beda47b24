import type { KvBytes } from '../../model/model-runner.ts';

/** Measures the time that copies of KV take. */
export class TimedKvBytes implements KvBytes {
  readonly #inner: KvBytes;
  readonly #now: () => number;
  #milliseconds = 0;

  /** @param now milliseconds, with fractions, of a monotonic clock */
  constructor(inner: KvBytes, now: () => number) {
    this.#inner = inner;
    this.#now = now;
  }

  get positionBytes(): number {
    return this.#inner.positionBytes;
  }

  /** Of all copies so far. */
  get seconds(): number {
    return this.#milliseconds / 1000;
  }

  read(slot: number, start: number, end: number, bytes: Uint8Array): void {
    const startedAt = this.#now();
    this.#inner.read(slot, start, end, bytes);
    this.#milliseconds += this.#now() - startedAt;
  }

  write(slot: number, start: number, parts: readonly Uint8Array[]): void {
    const startedAt = this.#now();
    this.#inner.write(slot, start, parts);
    this.#milliseconds += this.#now() - startedAt;
  }

  discard(slot: number, start: number): void {
    this.#inner.discard(slot, start);
  }
}
