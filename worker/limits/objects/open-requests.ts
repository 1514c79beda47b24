import { endUserId } from '../end-user.ts';
import type {
  ExceededLimit,
  LimitHolder,
  Renewal,
  ReservationRequest,
  ReservationResult,
  SettlementRequest,
} from '../quota/protocol.ts';
import * as quota from '../quota/quota.ts';
import { rateLimitHeaders } from '../quota/rate-limit-headers.ts';
import {
  type Charge,
  type Claim,
  type Counters,
  type Holder,
  type QuotaReservation,
  reservedBy,
  type Subject,
} from '../quota/state.ts';
import { priceOf } from '../usage/reservation-id.ts';
import { spendOf, type UsageRecord } from '../usage/usage-record.ts';
import { wasAway } from './alarm-clock.ts';
import type { BlockList } from './block-list.ts';
import type { LimiterStorage } from './limiter-storage.ts';
import { type AdmittedRequest, dueAt, type OpenReservation, openReservation } from './open-reservation.ts';
import { TENANT } from './stored-counters.ts';

/**
 * A Worker may settle its request for this many lifetimes after expiry. Then the limiter asks the upstream.
 * Expiry and this wait are less than two lifetimes, so that the bill of a Worker that was killed is final by
 * then.
 */
const ABANDON_LIFETIMES = 0.75;
/** By then, an upstream has usually noticed that its reader has disconnected. */
const INQUIRE_AFTER_MS = 250;

/** Returns the tenant, the key and the end user if there is one, with their limits. */
export const subjectsOf = ({ keyId, tenantLimits, keyLimits, endUser }: LimitHolder): Subject[] => [
  { id: TENANT, limits: tenantLimits },
  { id: keyId, limits: keyLimits },
  ...(endUser ? [{ id: endUserId(endUser), limits: endUser.limits }] : []),
];

type RequestStorage = Pick<LimiterStorage, 'counters' | 'open' | 'end'>;

/**
 * The requests of a tenant without a final usage record. They and the counters that they charge change in
 * memory; the storage commits them together, so that they are never stored apart.
 */
export class OpenRequests {
  readonly counters: Counters;
  readonly #storage: RequestStorage;
  readonly #open: RequestStorage['open'];
  readonly #blocked: Pick<BlockList, 'of'>;

  constructor(storage: RequestStorage, blocked: Pick<BlockList, 'of'>) {
    this.counters = storage.counters;
    this.#storage = storage;
    this.#open = storage.open;
    this.#blocked = blocked;
  }

  /**
   * Reserves all that the request needs, or nothing. Idempotent per request id. A probe changes nothing.
   * @param slices what isolates hold
   */
  reserve(
    request: ReservationRequest,
    now: number,
    slices: () => readonly Holder[] = () => [],
  ): ReservationResult {
    const subjects = subjectsOf(request);
    const headers = () => rateLimitHeaders(this.counters, subjects, now);
    const block = this.#blocked.of(request.keyId);
    if (block !== null)
      return { admitted: false, refusal: block, headers: block === 'revoked' ? {} : headers() };
    const open = this.#open.get(request.requestId);
    const { requestId: id, tokens, money, ttlMs, raise, probe } = request;
    if (open && !raise) return { admitted: true, headers: headers() };
    if (raise && open?.abandonAt !== null) return { admitted: false, refusal: 'expired', headers: headers() };
    const holders = () => [...this.#holders(open), ...slices()];
    // Requests that have used all they hold would wait for each other to grow.
    const claim = { id, subjects, tokens, money, ttlMs, ...(raise !== 'growth' && { holders }) };
    const result = probe ? quota.probe(this.counters, claim, now) : this.#decide(open, claim, raise, now);
    if (result && 'kind' in result) return { admitted: false, refusal: result, headers: headers() };
    if (!result) return { admitted: true, headers: headers() };
    this.#keep(open ? { ...open, reservation: result } : openReservation(result, request, now));
    return { admitted: true, headers: headers(), ...reservedBy(result) };
  }

  #decide(
    open: OpenReservation | undefined,
    claim: Claim,
    raise: ReservationRequest['raise'],
    now: number,
  ): QuotaReservation | ExceededLimit {
    if (!open) return quota.reserve(this.counters, claim, now);
    return quota.raise(this.counters, open.reservation, { claim, grows: raise === 'growth' }, now);
  }

  /** Returns what the other requests may give back. */
  #holders(open: OpenReservation | undefined): Holder[] {
    const others = this.#open.all().filter(([, request]) => request !== open);
    return others.map(([, { reservation, abandonAt }]) => ({
      ...reservation,
      isRunning: abandonAt === null,
    }));
  }

  /** Adds what an isolate has charged to a request. It stays charged if the request has ended. */
  extend(requestId: string, charge: Charge): void {
    const open = this.#open.get(requestId);
    if (open) this.#keep({ ...open, reservation: quota.extended(open.reservation, charge) });
  }

  /** Returns a request without a final record; undefined if there is none. */
  find(requestId: string): OpenReservation | undefined {
    return this.#open.get(requestId);
  }

  /** Adds a request that an isolate has admitted. */
  add(request: AdmittedRequest, reservation: QuotaReservation, at: number): void {
    this.#keep(openReservation(reservation, request, at));
  }

  /** Adds a request of a lost isolate. Its upstream is asked at once. */
  addLost(request: AdmittedRequest, reservation: QuotaReservation, at: number, now: number): void {
    this.#release(openReservation(reservation, request, at), now);
  }

  /** Renews a reservation and records what was used so far. */
  renew(requestId: string, { ttlMs, ...progress }: Renewal, now: number): void {
    const open = this.#open.get(requestId);
    // A settlement may overtake the last renewal.
    if (open?.record.status !== 'abandoned') return;
    // This Worker may have been unreachable for a while. It will settle its request itself.
    const abandonAt = open.abandonAt && now + ABANDON_LIFETIMES * ttlMs;
    const reservation = { ...open.reservation, expiresAt: now + ttlMs };
    this.#keep({ ...open, reservation, record: { ...open.record, ...progress }, abandonAt });
  }

  /**
   * Ends a request, unless it was settled before. With `inquire`, its record waits until the upstream has
   * been asked.
   */
  settle({ requestId, settlement, inquire }: SettlementRequest, now: number): void {
    const open = this.#open.get(requestId);
    if (open === undefined) return;
    const record = { ...open.record, ...settlement };
    if (inquire) this.#release({ ...open, record }, now + INQUIRE_AFTER_MS);
    else this.close(open, record);
  }

  /** Returns the requests of which something is due by now. */
  #due(now: number): OpenReservation[] {
    return this.#open.all().flatMap(([, open]) => (dueAt(open) <= now ? [open] : []));
  }

  /**
   * Frees the slots of expired requests. Their records wait for their Workers. If the object was away, all
   * count as renewed.
   */
  releaseDue(now: number): void {
    for (const open of this.#due(now)) {
      const { abandonAt, reservation, ttlMs } = open;
      if (abandonAt !== null) continue;
      if (wasAway(reservation.expiresAt, now))
        this.#keep({ ...open, reservation: { ...reservation, expiresAt: now + ttlMs } });
      else this.#release(open, now + ABANDON_LIFETIMES * ttlMs);
    }
  }

  /** Returns the requests whose upstreams must be asked by now. */
  abandoned(now: number): OpenReservation[] {
    return this.#due(now).filter(({ abandonAt }) => abandonAt !== null);
  }

  /** Returns false if the request has changed since `open` was read. */
  isCurrent(open: OpenReservation): boolean {
    return this.#open.get(open.reservation.id) === open;
  }

  /** Asks for an abandoned request again at `abandonAt`. */
  postpone(open: OpenReservation, record: UsageRecord, abandonAt: number): void {
    this.#keep({ ...open, record, abandonAt });
  }

  /** Charges what a request has used, and ends it with this record. */
  close({ reservation, abandonAt }: OpenReservation, record: UsageRecord): void {
    const spent = spendOf(priceOf(reservation.id), record.usage);
    quota.settle(this.counters, reservation, spent, abandonAt === null ? 1 : 0);
    this.#open.delete(reservation.id);
    this.#storage.end({ ...record, cost: spent.money });
  }

  /** Returns whether a key or its tenant is blocked. */
  isBlocked(keyId: string): boolean {
    return this.#blocked.of(keyId) !== null;
  }

  #keep(open: OpenReservation): void {
    this.#open.set(open.reservation.id, open);
  }

  /** Frees a request's slot. Its reservation stays charged until Worker or account report the usage. */
  #release(open: OpenReservation, abandonAt: number): void {
    if (open.abandonAt === null) quota.release(this.counters, open.reservation);
    this.#keep({ ...open, abandonAt });
  }
}
