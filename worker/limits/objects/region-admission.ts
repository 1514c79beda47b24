import type {
  Gauge,
  LimitHolder,
  RegionDecision,
  RegionSync,
  RegionSyncResult,
  Renewal,
  ReservationRequest,
  ReservationResult,
  SettlementRequest,
} from '../../env/limiter-protocol.ts';
import { chargedTokens } from '../../usage/usage-record.ts';
import { HeldSlices } from '../quota/held-slices.ts';
import { headersOf } from '../quota/rate-limit-headers.ts';
import { resetIn } from '../quota/window.ts';

/** A running request that is charged to a slice of this region. */
interface ChargedRequest {
  readonly keyId: string;
  readonly slice: number;
  readonly tokens: number;
}

/**
 * Admits requests from regional slices, without asking home. Nothing in here needs to survive a restart: a restarted
 * region holds no slices, and home takes them back at the next sync. Only the log of decisions is stored. Pure: the clock
 * is an argument.
 */
export class RegionAdmission {
  readonly #slices = new HeldSlices();
  readonly #running = new Map<string, ChargedRequest>();
  /** Keys used since the last sync. */
  readonly #usedKeys = new Map<string, LimitHolder>();
  #renewals = new Map<string, Renewal>();
  /** A sync is under way whose slices must not be used. */
  #recalled = false;

  /**
   * Admits from the key's slice; null if home must decide, as it does for every raise. No decision if the request was
   * already admitted, or is a probe.
   */
  admit(
    request: ReservationRequest,
    now: number,
  ): { readonly result: ReservationResult; readonly decision: RegionDecision | null } | null {
    const { requestId, tenantId, keyId, tokens, tenantLimits, keyLimits } = request;
    if (request.raise) return null;
    this.#usedKeys.set(keyId, { tenantId, keyId, tenantLimits, keyLimits });
    if (this.#running.has(requestId)) {
      return {
        result: { admitted: true, headers: this.rateLimitHeaders(keyId, now) ?? {} },
        decision: null,
      };
    }
    if (request.probe) {
      // What is left of a slice may suffice together with what is left at home, so a slice counts as room.
      const headers = this.rateLimitHeaders(keyId, now);
      return headers && { result: { admitted: true, headers }, decision: null };
    }
    const charged = this.#slices.take(keyId, tokens, now);
    if (!charged) {
      // The rest of the slice returns to home, where it may suffice together with what is left there.
      this.#slices.drop(keyId);
      return null;
    }
    this.#running.set(requestId, { keyId, slice: charged.number, tokens });
    return {
      result: { admitted: true, headers: this.rateLimitHeaders(keyId, now) ?? {} },
      decision: { kind: 'admitted', request, slice: charged.number, at: now },
    };
  }

  settle(request: SettlementRequest, now: number): RegionDecision {
    const { requestId, settlement } = request;
    const running = this.#running.get(requestId);
    this.#running.delete(requestId);
    this.#renewals.delete(requestId);
    const refund = running ? this.#refund(running, chargedTokens(settlement.usage), now) : null;
    return { ...request, kind: 'settled', refund };
  }

  #refund({ keyId, slice, tokens }: ChargedRequest, used: number, now: number) {
    const unused = Math.max(0, tokens - used);
    return this.#slices.refund(keyId, slice, unused, now) ? { slice, tokens: unused } : null;
  }

  renew(requestId: string, renewal: Renewal): void {
    this.#renewals.set(requestId, renewal);
  }

  /** Composes a sync, except for what only the object and its log know. Renewals are sent once: they may be lost. */
  composeSync(
    requests: readonly ReservationRequest[],
    now: number,
  ): Pick<RegionSync, 'renewals' | 'heldSlices' | 'requests' | 'sliceRequests'> {
    const heldSlices = this.#slices.numbers(now);
    const held = new Set(heldSlices);
    // The slices of these requests are gone, so their settlements refund nothing to this region.
    for (const [id, { slice }] of this.#running) if (!held.has(slice)) this.#running.delete(id);
    const sliceRequests = [...this.#usedKeys.values()].filter(({ keyId }) => this.#slices.isLow(keyId, now));
    const renewals = [...this.#renewals].map(([requestId, renewal]) => ({ requestId, renewal }));
    this.#usedKeys.clear();
    this.#renewals = new Map();
    this.#recalled = false;
    return { renewals, heldSlices, requests, sliceRequests };
  }

  /**
   * Takes the granted slices. Returns true if another sync should follow soon, because home gets a slice back.
   * @param sentAt when the sync was composed: slices live from then on, never longer than home assumes
   */
  takeSlices(result: RegionSyncResult, sentAt: number): boolean {
    if (this.#recalled) return result.slices.length > 0;
    let replaced = false;
    for (const { keyId, number, amounts, lifeMs, status } of result.slices) {
      const expiresAt = sentAt + lifeMs;
      const left = { ...amounts };
      replaced ||= this.#slices.of(keyId, sentAt) !== null;
      this.#slices.put(keyId, { number, granted: amounts, left, lifeMs, expiresAt, status });
    }
    return replaced;
  }

  /** Drops all slices, because home has blocked a key or the tenant. Home decides everything until it grants new ones. */
  recall(): void {
    this.#slices.clear();
    this.#recalled = true;
  }

  /** Unix milliseconds at which the next slice expires and a sync is due; null without slices. */
  nextExpiry(): number | null {
    return this.#slices.nextExpiry();
  }

  /** Returns `x-ratelimit-*` headers from the key's slice; null without one. */
  rateLimitHeaders(keyId: string, now: number): Record<string, string> | null {
    const slice = this.#slices.of(keyId, now);
    if (!slice) return null;
    const { status, left } = slice;
    const resetMs = resetIn([[Math.floor(now / 1000), 1]], now);
    const gauge = (home: Gauge | null, here: number | null): Gauge | null =>
      home && { limit: home.limit, remaining: home.remaining + (here ?? 0), resetMs };
    return headersOf({
      requests: gauge(status.requests, left.requests),
      tokens: gauge(status.tokens, left.tokens),
    });
  }
}
