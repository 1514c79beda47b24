/** Measures the steps of one request for the Server-Timing header. */
export class Timings {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #durations = new Map<string, number>();

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#startedAt = now();
  }

  /** Runs `work` and records its duration. */
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

  /** Milliseconds since the request arrived. */
  get elapsed(): number {
    return this.#now() - this.#startedAt;
  }

  /** For example `auth;dur=1, limit;dur=2, total;dur=40`. Steps that have not run are left out. */
  header(): string {
    return [...this.#durations, ['total', this.elapsed] as const]
      .map(([name, ms]) => `${name};dur=${Math.round(ms * 10) / 10}`)
      .join(', ');
  }
}
