import { backOff } from '@continuo/shared/retry.ts';
import type { Claim } from './claim.ts';
import { limitName, unchecked } from './limit-errors.ts';
import type { Spend } from './quota/budget.ts';
import { isSome } from './quota/local-budgets.ts';
import type { ExceededLimit, ReservationResult } from './quota/protocol.ts';
import type { Reservation } from './reservation.ts';

/** Attempts to reach the object, and the pause after the first of them. */
const ATTEMPTS = 3;
const FIRST_PAUSE_MS = 500;

/**
 * Raises the reservation of a request while it generates, so that a budget is not blocked by maxima that few
 * requests reach.
 */
export class Growth {
  readonly #claim: Claim;
  readonly #reserved: Reservation;
  /** The only call under way. */
  #calling: Promise<ExceededLimit | null> | null = null;
  /** Usable tokens when more were last reserved ahead of need. */
  #aheadOf = -1;
  /** Waits for a limit per minute. Otherwise it waits only for what isolates hold unused. */
  readonly #waits: boolean;
  /** Unix milliseconds after which the request waits no longer. */
  readonly #waitsUntil: number;
  #isEnded = false;
  readonly #ended = Promise.withResolvers<null>();

  constructor(claim: Claim, reserved: Reservation) {
    this.#claim = claim;
    this.#reserved = reserved;
    const { context, principal } = claim;
    // No reader waits for the text of a batch.
    this.#waits = principal.tenant.waitForTokens || context.batchKey !== null;
    this.#waitsUntil = context.now() + context.settings.REQUEST_TIMEOUT_MS;
  }

  /** Begins to reserve the next part, once. */
  ahead(used: number): void {
    const { usable } = this.#reserved;
    if (this.#isEnded || this.#aheadOf === usable || !this.#reserved.isLow(used)) return;
    this.#aheadOf = usable;
    // If it fails, the request asks again when it needs the part.
    void this.#next(used).catch(() => {});
  }

  /**
   * Waits until the request may use so many tokens, or has ended. Returns the limit that has no room for
   * them, or null.
   * @throws ApiError if the key was blocked; 503 if the object cannot be reached
   */
  async until(tokens: number, isLast: boolean): Promise<string | null> {
    const { now, backoff } = this.#claim.context;
    while (!this.#isEnded && !this.#reserved.covers(tokens)) {
      const limit = await Promise.race([this.#next(tokens), this.#ended.promise]);
      if (limit === null) continue;
      const wait = limit.held || this.#waits ? limit.retryAfterMs : null;
      if (wait === null || now() + wait > this.#waitsUntil) return limitName(limit);
      await Promise.race([backoff.pause(wait), this.#ended.promise]);
    }
    if (!isLast) this.ahead(tokens);
    return null;
  }

  /** Reserves nothing more, and waits no longer. */
  end(): void {
    this.#isEnded = true;
    this.#ended.resolve(null);
  }

  /** Reserves the next part. Returns the limit that has no room for it, or null. */
  #next(used: number): Promise<ExceededLimit | null> {
    this.#calling ??= this.#reserve(used).finally(() => {
      this.#calling = null;
    });
    return this.#calling;
  }

  async #reserve(used: number): Promise<ExceededLimit | null> {
    const total = this.#reserved.withNextPart(used);
    const missing = this.#claim.of(this.#reserved.missing(total));
    const { limiter, context } = this.#claim;
    const here = limiter.extend(missing, this.#reserved.id, false, context);
    if (isSome(here)) {
      this.#reserved.add(here);
      return null;
    }
    const result = await this.#askObject(total);
    if (result.admitted) {
      const { tokens = 0, money = 0 } = result;
      this.#reserved.raise({ tokens, money });
      return null;
    }
    if (typeof result.refusal === 'string') throw this.#claim.errorOf(result.refusal);
    return result.refusal;
  }

  async #askObject(total: Spend): Promise<ReservationResult> {
    const { limiter, context } = this.#claim;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const request = { ...this.#claim.of(total), requestId: this.#reserved.id, raise: 'growth' } as const;
      const result = await limiter.raise(request, context).catch(() => null);
      if (result !== null) return result;
      if (this.#isEnded) break;
      await context.backoff.pause(backOff(attempt, FIRST_PAUSE_MS));
    }
    throw unchecked();
  }
}
