import type { PlaceClaim } from '../tenant-rpc.ts';

/** By then, an object that was claimed is written and every listing has it, or it never will be. */
const KEPT_MS = 30_000;

/**
 * The places that creations have taken before their objects can be listed. A listing alone would let all of
 * many parallel creations pass. In memory only: a restart forgets the claims of 30 s. Pure: the clock is an
 * argument (Unix milliseconds).
 */
export class PlaceClaims {
  readonly #claimed = new Map<string, { readonly kind: string; readonly until: number }>();

  /** Takes a place. Returns false if none is left. */
  take({ kind, id, counted, listed, max }: PlaceClaim, now: number): boolean {
    for (const [name, { until }] of this.#claimed) if (until <= now) this.#claimed.delete(name);
    const listedIds = new Set(listed);
    const unlisted = [...this.#claimed].filter(
      ([name, claim]) => claim.kind === kind && !listedIds.has(name),
    );
    if (counted + unlisted.length >= max) return false;
    this.#claimed.set(id, { kind, until: now + KEPT_MS });
    return true;
  }
}
