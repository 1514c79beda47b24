/** Returned while no request has finished. */
const DEFAULT_WAIT_MS = 1_000;
const MIN_WAIT_MS = 100;
/** Clients do not wait longer. */
const MAX_WAIT_MS = 60_000;

/** Measures how fast requests finish, to compute retry-after. */
export class Throughput {
  /** Ring of the latest finish times. */
  readonly #finishedAt: Float64Array;
  #count = 0;

  /** @param window number of finish times to keep */
  constructor(window: number) {
    this.#finishedAt = new Float64Array(window);
  }

  /** @param now milliseconds */
  recordFinish(now: number): void {
    this.#finishedAt[this.#count % this.#finishedAt.length] = now;
    this.#count++;
  }

  /** Excludes the time since the last finish, because the engine had free slots. */
  resume(now: number): void {
    if (this.#count === 0) return;
    const idle = now - this.#finishedAt[(this.#count - 1) % this.#finishedAt.length]!;
    for (let at = 0; at < this.#finishedAt.length; at++) this.#finishedAt[at]! += idle;
  }

  /** Estimates the milliseconds from one finish to the next; between 100 and 60,000. */
  waitForNext(now: number): number {
    const count = Math.min(this.#count, this.#finishedAt.length);
    if (count === 0) return DEFAULT_WAIT_MS;
    const oldest = this.#finishedAt[(this.#count - count) % this.#finishedAt.length]!;
    return Math.round(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, (now - oldest) / count)));
  }
}
