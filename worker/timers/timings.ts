/** Where a request's time went, for the Server-Timing header; what is not known yet is left out. */
export class Timings {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #durations = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** Runs `work` and keeps how long it took. */
  async measure<T>(name: string, work: () => Promise<T>): Promise<T> {
    const from = this.#now();
    try {
      return await work();
    } finally {
      this.set(name, this.#now() - from);
    }
  }

  /** @param ms milliseconds */
  set(name: string, ms: number): void {
    this.#durations.set(name, ms);
  }

  /** Milliseconds since the request came in. */
  get elapsed(): number {
    return this.#now() - this.#startedAt;
  }

  /** E.g. `auth;dur=1, limit;dur=2, total;dur=40`. */
  header(): string {
    return [...this.#durations, ['total', this.elapsed] as const]
      .map(([name, ms]) => `${name};dur=${Math.round(ms * 10) / 10}`)
      .join(', ');
  }
}
