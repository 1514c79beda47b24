/** How fast sequences have been finishing lately, for an honest retry-after. */

/** Without any finished sequence to judge by. */
const UNKNOWN_MS = 1_000;
const LEAST_MS = 100;
/** Clients give up on longer waits. */
const MOST_MS = 60_000;

export class Throughput {
  /** Times of the latest finishes in a ring. */
  readonly #finishedAt: Float64Array;
  #count = 0;

  /** @param window finishes that are looked back on */
  constructor(window: number) {
    this.#finishedAt = new Float64Array(window);
  }

  /** @param now milliseconds */
  recordFinish(now: number): void {
    this.#finishedAt[this.#count % this.#finishedAt.length] = now;
    this.#count++;
  }

  /** More could have been done: the time since the last finish does not count. */
  resume(now: number): void {
    if (this.#count === 0) return;
    const idle = now - this.#finishedAt[(this.#count - 1) % this.#finishedAt.length]!;
    for (let at = 0; at < this.#finishedAt.length; at++) this.#finishedAt[at]! += idle;
  }

  /** Milliseconds until `sequences` more have finished, if it goes on like this; between 0.1 and 60 seconds. */
  waitFor(sequences: number, now: number): number {
    const known = Math.min(this.#count, this.#finishedAt.length);
    if (known === 0) return UNKNOWN_MS;
    const oldest = this.#finishedAt[(this.#count - known) % this.#finishedAt.length]!;
    const perSequence = Math.max(now - oldest, 1) / known;
    return Math.round(Math.min(MOST_MS, Math.max(LEAST_MS, sequences * perSequence)));
  }
}
