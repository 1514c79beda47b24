import type { Usage } from '@continuo/shared/generation.ts';
import type { Claim } from './claim.ts';
import { NO_USAGE } from './usage/usage-record.ts';

/** Renewals per lifetime of a reservation; all but one may be lost. */
const RENEWALS = 3;

/** What a running request has used so far, and where. Both change while it runs. */
export interface Progress {
  readonly tally: { readonly usage: Usage };
  readonly upstream: { readonly name: string | null };
}

const NO_PROGRESS: Progress = { tally: { usage: NO_USAGE }, upstream: { name: null } };

/**
 * Renews the reservation of a running request, and reads its limits again. The timer ends with the request's
 * context. Without renewals, the reservation expires.
 */
export class Renewals {
  readonly #requestId: string;
  readonly #claim: Claim;
  #progress = NO_PROGRESS;
  #cancel: () => void;

  constructor(requestId: string, claim: Claim) {
    this.#requestId = requestId;
    this.#claim = claim;
    this.#cancel = this.#nextIn(claim.context.settings.RESERVATION_TTL_MS);
  }

  get usage(): Usage {
    return this.#progress.tally.usage;
  }

  watch(progress: Progress): void {
    this.#progress = progress;
  }

  end(): void {
    this.#cancel();
  }

  #nextIn(ttlMs: number): () => void {
    const { limiter, context } = this.#claim;
    return context.timers.after(ttlMs / RENEWALS, () => {
      const { name: upstream } = this.#progress.upstream;
      const renewal = { usage: this.usage, upstream, ttlMs };
      limiter.renew(this.#requestId, renewal, context);
      void this.#claim.refresh();
      this.#cancel = this.#nextIn(ttlMs);
    });
  }
}
