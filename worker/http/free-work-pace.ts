/** Less work costs too little to wait. */
const LEAST_BYTES = 16_384;
/** Keeps the free work for one tenant near a hundredth of a core. */
const BYTES_PER_MS = 8_192;
/** Nothing waits longer. A caller then gets one answer per second. */
const MAX_WAIT_MS = 1_000;

/**
 * Spaces out by tenant what costs time and counts in no limit: refusals of large bodies, and streams that are read again. The
 * first one is sent at once. Callers without a valid key count as one tenant.
 */
export class FreeWorkPace {
  readonly #now: () => number;
  readonly #pause: (ms: number) => Promise<unknown>;
  /** By tenant, when its next work may begin; in the future. */
  readonly #next = new Map<string, number>();

  constructor(now: () => number, pause: (ms: number) => Promise<unknown>) {
    this.#now = now;
    this.#pause = pause;
  }

  /** Waits for the turn of a refused body of `bytes`, or of work that costs as much. */
  async turn(tenantId: string, bytes: number): Promise<void> {
    if (bytes < LEAST_BYTES) return;
    const now = this.#now();
    for (const [tenant, next] of this.#next) if (next <= now) this.#next.delete(tenant);
    const wait = Math.min(MAX_WAIT_MS, (this.#next.get(tenantId) ?? now) - now);
    this.#next.set(tenantId, now + wait + bytes / BYTES_PER_MS);
    if (wait > 0) await this.#pause(wait);
  }
}
