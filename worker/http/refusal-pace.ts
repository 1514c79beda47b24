/** Refusals of smaller bodies cost too little to wait. */
const LARGE_BODY_BYTES = 16_384;
/** Keeps the refusals of one tenant below a twentieth of a core. */
const BYTES_PER_MS = 32_768;
/** No refusal waits longer. A caller then gets one per second. */
const MAX_WAIT_MS = 1_000;

/**
 * Spaces out the refusals of large bodies by tenant, because a body costs time whether or not its request is refused. The
 * first one is sent at once. Callers without a valid key count as one tenant.
 */
export class RefusalPace {
  readonly #now: () => number;
  readonly #pause: (ms: number) => Promise<unknown>;
  /** By tenant, when its next refusal may be sent; in the future. */
  readonly #next = new Map<string, number>();

  constructor(now: () => number, pause: (ms: number) => Promise<unknown>) {
    this.#now = now;
    this.#pause = pause;
  }

  /** Waits until a body of `bytes` may be refused. */
  async turn(tenantId: string, bytes: number): Promise<void> {
    if (bytes < LARGE_BODY_BYTES) return;
    const now = this.#now();
    for (const [tenant, next] of this.#next) if (next <= now) this.#next.delete(tenant);
    const wait = Math.min(MAX_WAIT_MS, (this.#next.get(tenantId) ?? now) - now);
    this.#next.set(tenantId, now + wait + bytes / BYTES_PER_MS);
    if (wait > 0) await this.#pause(wait);
  }
}
