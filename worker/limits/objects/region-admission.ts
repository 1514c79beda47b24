import { chargedTokens } from '../../usage/usage-record.ts';
import type { Ending, Progress, Reservation, ReservationRequest } from '../protocol.ts';
import { Holdings } from '../quota/held-slices.ts';
import { type Gauge, headersOf } from '../quota/rate-limit-headers.ts';
import { resetIn } from '../quota/window.ts';
import type { Exchange, ExchangeAnswer, JournalEntry, Wish } from './exchange.ts';

/** A request that a slice of this region pays for. */
interface Running {
  readonly keyId: string;
  readonly slice: number;
  readonly tokens: number;
}

/**
 * What a region decides without asking. Nothing in here needs to survive: a region that has lost its memory holds no
 * slices, and home takes them back as soon as it hears so; its journal does survive. Pure: the clock is an argument.
 */
export class RegionBook {
  readonly #holdings = new Holdings();
  readonly #running = new Map<string, Running>();
  /** Keys that were used since the last exchange. */
  readonly #wishes = new Map<string, Wish>();
  #progress = new Map<string, Progress>();
  /** An exchange is on its way whose slices are not to be taken. */
  #recalled = false;

  /** Admits from the key's slice; null when home must be asked. No entry: the same request was admitted before. */
  admit(
    request: ReservationRequest,
    now: number,
  ): { readonly reservation: Reservation; readonly entry: JournalEntry | null } | null {
    const { requestId, keyId, tokens, tenantLimits, keyLimits } = request;
    this.#wishes.set(keyId, { keyId, tenantLimits, keyLimits });
    if (this.#running.has(requestId)) {
      return { reservation: { admitted: true, headers: this.standing(keyId, now) ?? {} }, entry: null };
    }
    const paid = this.#holdings.take(keyId, tokens, now);
    if (!paid) {
      // What is left goes home first: together with what is there it may be enough.
      this.#holdings.drop(keyId);
      return null;
    }
    this.#running.set(requestId, { keyId, slice: paid.number, tokens });
    return {
      reservation: { admitted: true, headers: this.standing(keyId, now) ?? {} },
      entry: { kind: 'admitted', request, slice: paid.number, at: now },
    };
  }

  settle(ending: Ending, now: number): JournalEntry {
    const { requestId, settlement } = ending;
    const running = this.#running.get(requestId);
    this.#running.delete(requestId);
    this.#progress.delete(requestId);
    const refund = running ? this.#refund(running, chargedTokens(settlement.usage), now) : null;
    return { ...ending, kind: 'settled', refund };
  }

  #refund({ keyId, slice, tokens }: Running, used: number, now: number) {
    const unused = Math.max(0, tokens - used);
    return this.#holdings.refund(keyId, slice, unused, now) ? { slice, tokens: unused } : null;
  }

  renew(requestId: string, progress: Progress): void {
    this.#progress.set(requestId, progress);
  }

  /** All but what the journal and the object itself know. Signs of life are told once: they may be lost. */
  compose(
    claims: readonly ReservationRequest[],
    now: number,
  ): Pick<Exchange, 'progress' | 'holding' | 'claims' | 'wishes'> {
    const holding = this.#holdings.numbers(now);
    const held = new Set(holding);
    // Their slices are gone: nothing comes back to this region any more.
    for (const [id, { slice }] of this.#running) if (!held.has(slice)) this.#running.delete(id);
    const wishes = [...this.#wishes.values()].filter(({ keyId }) => this.#holdings.isLow(keyId, now));
    const progress = [...this.#progress].map(([requestId, told]) => ({ requestId, progress: told }));
    this.#wishes.clear();
    this.#progress = new Map();
    this.#recalled = false;
    return { progress, holding, claims, wishes };
  }

  /**
   * Takes the slices of an answer; true when home should soon get others back in their place.
   * @param sentAt when the exchange was composed: slices live from then on, never longer than home believes
   */
  absorb(answer: ExchangeAnswer, sentAt: number): boolean {
    if (this.#recalled) return answer.slices.length > 0;
    let replaced = false;
    for (const { keyId, number, amounts, lifeMs, standing } of answer.slices) {
      const expiresAt = sentAt + lifeMs;
      const left = { ...amounts };
      replaced ||= this.#holdings.of(keyId, sentAt) !== null;
      this.#holdings.put(keyId, { number, granted: amounts, left, lifeMs, expiresAt, standing });
    }
    return replaced;
  }

  /** Something was blocked: from now on every decision is home's until it grants anew. */
  recall(): void {
    this.#holdings.clear();
    this.#recalled = true;
  }

  /** When slices are over, and home should be told; null without slices. */
  nextExpiry(): number | null {
    return this.#holdings.nextExpiry();
  }

  /** `x-ratelimit-*` headers as far as the key's slice tells; null without one. */
  standing(keyId: string, now: number): Record<string, string> | null {
    const holding = this.#holdings.of(keyId, now);
    if (!holding) return null;
    const { standing, left } = holding;
    const resetMs = resetIn([[Math.floor(now / 1000), 1]], now);
    const gauge = (home: Gauge | null, here: number | null): Gauge | null =>
      home && { limit: home.limit, remaining: home.remaining + (here ?? 0), resetMs };
    return headersOf({
      requests: gauge(standing.requests, left.requests),
      tokens: gauge(standing.tokens, left.tokens),
    });
  }
}
