import { endUserId, isEndUser } from '../end-user.ts';
import type {
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
  type Holder,
  isUnused,
  type QuotaReservation,
  type QuotaState,
  reservedBy,
  type Subject,
} from '../quota/state.ts';
import { DAY_MS, momentOf } from '../quota/window.ts';
import { priceOf } from '../usage/reservation-id.ts';
import { spendOf, type UsageRecord } from '../usage/usage-record.ts';
import { wasAway } from './alarm-clock.ts';
import type { BlockList } from './block-list.ts';
import type { LimiterStorage } from './limiter-storage.ts';
import { type AdmittedRequest, type OpenReservation, openReservation } from './open-reservation.ts';

/** Id of the tenant among its limiter's subjects. The other subjects are its keys and its end users. */
export const TENANT = 'tenant';
/**
 * A Worker may settle its request for this many lifetimes after expiry. Then the limiter asks the upstream.
 * Expiry and this wait are less than two lifetimes, so that the bill of a Worker that was killed is final by
 * then.
 */
const ABANDON_LIFETIMES = 0.75;
/** By then, an upstream has usually noticed that its reader has disconnected. */
const INQUIRE_AFTER_MS = 250;

/** If there are more subjects in memory, idle end users are dropped. Their counters are stored. */
const MAX_SUBJECTS = 5_000;

/** Returns the tenant, the key and the end user if there is one, with their limits. */
export const subjectsOf = ({ keyId, tenantLimits, keyLimits, endUser }: LimitHolder): Subject[] => [
  { id: TENANT, limits: tenantLimits },
  { id: keyId, limits: keyLimits },
  ...(endUser ? [{ id: endUserId(endUser), limits: endUser.limits }] : []),
];

/**
 * The requests of a tenant without a final usage record, and the counters that they charge. Changes are in
 * memory at once; `write` stores all of them together, so that a request and its counters are never stored
 * apart.
 */
export class OpenRequests {
  readonly quota: QuotaState;
  readonly #storage: LimiterStorage;
  readonly #blocked: BlockList;
  readonly #open: Map<string, OpenReservation>;
  /** Ids of requests that are not written yet. */
  readonly #changed = new Set<string>();
  /** Subjects whose counters are not written yet. */
  readonly #touched = new Set<string>();
  /** Records of closed requests that are not written yet. */
  #closed: UsageRecord[] = [];
  /** Unix milliseconds: see `takeFirstDue`. */
  #firstDue: number | null = null;

  constructor(storage: LimiterStorage, blocked: BlockList) {
    this.#storage = storage;
    this.#blocked = blocked;
    this.#open = storage.loadOpen();
    const running = [...this.#open].filter(([, { abandonAt }]) => abandonAt === null);
    this.quota = {
      subjects: storage.loadSubjects(),
      reservations: new Map(running.map(([id, { reservation }]) => [id, reservation])),
    };
    for (const { reservation } of this.#open.values()) this.#recall(reservation.subjects);
  }

  /** Loads the counters of end users that are not in memory. */
  #recall(subjects: readonly string[]): void {
    for (const id of subjects.filter(isEndUser)) {
      const stored = this.quota.subjects.has(id) ? null : this.#storage.loadEndUser(id);
      if (stored) this.quota.subjects.set(id, stored);
    }
  }

  #forgetIdleEndUsers(): void {
    if (this.quota.subjects.size <= MAX_SUBJECTS) return;
    const busy = new Set([...this.#open.values()].flatMap(({ reservation }) => reservation.subjects));
    for (const id of this.quota.subjects.keys())
      if (isEndUser(id) && !busy.has(id)) this.quota.subjects.delete(id);
  }

  /**
   * Drops the counters of keys and end users that no window counts any more. To be called after a checkpoint.
   * @returns the ids of these subjects
   */
  dropUnused(now: number): readonly string[] {
    // After a restart, the clock may be back in the day or month before.
    const at = momentOf(now - DAY_MS);
    const unused = [...this.quota.subjects].filter(([id, state]) => id !== TENANT && isUnused(state, at));
    const ids = unused.map(([id]) => id);
    for (const id of ids) this.quota.subjects.delete(id);
    this.#storage.dropSubjects(ids, now);
    return ids;
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
    this.#recall(subjects.map(({ id }) => id));
    const headers = () => rateLimitHeaders(this.quota, subjects, now);
    const block = this.#blocked.of(request.keyId);
    if (block !== null)
      return { admitted: false, refusal: block, headers: block === 'revoked' ? {} : headers() };
    const open = this.#open.get(request.requestId);
    const { requestId: id, tokens, money, ttlMs, raise, probe } = request;
    if (open && !raise) return { admitted: true, headers: headers() };
    if (raise && open?.abandonAt !== null) return { admitted: false, refusal: 'expired', headers: headers() };
    const others = () => [...this.#open.values()].filter((other) => other !== open);
    const holders = () => [...others().map(({ reservation }) => reservation), ...slices()];
    // Requests that have used all they hold would wait for each other to grow.
    const claim = { id, subjects, tokens, money, ttlMs, ...(raise !== 'growth' && { holders }) };
    const refusal = raise
      ? quota.raise(this.quota, claim, raise === 'growth', now)
      : (probe ? quota.probe : quota.reserve)(this.quota, claim, now);
    if (refusal) return { admitted: false, refusal, headers: headers() };
    if (probe) return { admitted: true, headers: headers() };
    const reservation = this.quota.reservations.get(id)!;
    this.#keep(open ? { ...open, reservation } : openReservation(reservation, request, now));
    this.touch(reservation.subjects);
    this.#dueBy(now + ttlMs);
    return { admitted: true, headers: headers(), ...reservedBy(reservation) };
  }

  /** Adds what an isolate has charged to a request. It stays charged if the request has ended. */
  extend(requestId: string, charge: Charge): void {
    const open = this.#open.get(requestId);
    if (open) this.#keep({ ...open, reservation: quota.extend(this.quota, open.reservation, charge) });
  }

  /** Returns a request without a final record; undefined if there is none. */
  find(requestId: string): OpenReservation | undefined {
    return this.#open.get(requestId);
  }

  /** Adds a request that an isolate has admitted. */
  add(request: AdmittedRequest, reservation: QuotaReservation, at: number): void {
    this.#keep(openReservation(reservation, request, at));
    this.#dueBy(reservation.expiresAt);
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
    const alive = quota.renew(this.quota, requestId, now + ttlMs);
    // This Worker was unreachable for a while, and will settle its request itself.
    const abandonAt = open.abandonAt && now + ABANDON_LIFETIMES * ttlMs;
    const reservation = alive ? open.reservation : { ...open.reservation, expiresAt: now + ttlMs };
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
    if (!inquire) {
      this.close(open, record);
      return;
    }
    this.#release({ ...open, record }, now + INQUIRE_AFTER_MS);
    this.#dueBy(now + INQUIRE_AFTER_MS);
  }

  /**
   * Frees the slots of expired requests. Their records wait for their Workers. If the object was away, all
   * count as renewed.
   */
  releaseDue(now: number): void {
    for (const id of quota.dueReservations(this.quota, now)) {
      const open = this.#open.get(id)!;
      if (wasAway(open.reservation.expiresAt, now)) {
        quota.renew(this.quota, id, now + open.ttlMs);
        this.#keep(open);
      } else this.#release(open, now + ABANDON_LIFETIMES * open.ttlMs);
    }
  }

  /** Returns the requests whose upstreams must be asked by now. */
  abandoned(now: number): OpenReservation[] {
    return [...this.#open.values()].filter(({ abandonAt }) => (abandonAt ?? now + 1) <= now);
  }

  /** Returns false if the request has changed since `open` was read. */
  isCurrent(open: OpenReservation): boolean {
    return this.#open.get(open.reservation.id) === open;
  }

  /** Asks for an abandoned request again at `abandonAt`. */
  postpone(open: OpenReservation, record: UsageRecord, abandonAt: number): void {
    this.#keep({ ...open, record, abandonAt });
  }

  /** Charges what a request has used. Its record is written with the next commit. */
  close(open: OpenReservation, record: UsageRecord): void {
    const { reservation, abandonAt } = open;
    const spent = spendOf(priceOf(reservation.id), record.usage);
    if (abandonAt === null) quota.settle(this.quota, reservation.id, spent);
    else quota.recharge(this.quota, reservation, spent);
    quota.spend(this.quota, reservation, spent.money);
    this.#open.delete(reservation.id);
    this.#changed.delete(reservation.id);
    this.#closed.push({ ...record, cost: spent.money });
    this.touch(reservation.subjects);
  }

  /** Marks the counters of these subjects as changed. */
  touch(subjects: readonly string[]): void {
    for (const id of subjects) this.#touched.add(id);
  }

  /** Stores all changes in one commit. Returns the records of the requests that have ended. */
  write(): readonly UsageRecord[] {
    const ended = this.#closed;
    const touched = [...this.#touched];
    if (touched.length + this.#changed.size + ended.length === 0 && !this.#storage.isDue) return [];
    const ids = [...this.#changed, ...ended.map(({ requestId }) => requestId)];
    const changes = {
      subjects: new Map(touched.map((id) => [id, this.quota.subjects.get(id)!])),
      open: new Map(ids.map((id) => [id, this.#open.get(id) ?? null])),
      records: ended,
    };
    this.#changed.clear();
    this.#closed = [];
    this.#touched.clear();
    this.#storage.commit(changes);
    this.#forgetIdleEndUsers();
    return ended;
  }

  /** Unix milliseconds at which reservations expire or upstreams must be asked; null = never. */
  nextDue(): readonly (number | null)[] {
    return [quota.nextExpiry(this.quota), ...[...this.#open.values()].map(({ abandonAt }) => abandonAt)];
  }

  /**
   * Returns when the first reservation expires, or the first upstream is to be asked, of those that were
   * added since the last time; null = none was. Saves a look at all open requests.
   */
  takeFirstDue(): number | null {
    const due = this.#firstDue;
    this.#firstDue = null;
    return due;
  }

  #dueBy(at: number): void {
    this.#firstDue = Math.min(this.#firstDue ?? at, at);
  }

  /** Returns whether a key or its tenant is blocked. */
  isBlocked(keyId: string): boolean {
    return this.#blocked.of(keyId) !== null;
  }

  #keep(open: OpenReservation): void {
    this.#open.set(open.reservation.id, open);
    this.#changed.add(open.reservation.id);
  }

  /** Frees a request's slot. Its reservation stays charged until Worker or account report the usage. */
  #release(open: OpenReservation, abandonAt: number): void {
    quota.release(this.quota, open.reservation.id);
    this.#keep({ ...open, abandonAt });
    this.touch(open.reservation.subjects);
  }
}
