import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../../env/env.ts';
import type {
  Block,
  LimitHolder,
  RegionSync,
  RegionSyncResult,
  Renewal,
  ReservationRequest,
  ReservationResult,
  SettlementRequest,
  TenantLimiterRpc,
} from '../../env/limiter-protocol.ts';
import { flushOutbox } from '../../usage/usage-outbox.ts';
import { chargedTokens, type UsageRecord } from '../../usage/usage-record.ts';
import { dueReservations, nextExpiry, raise, recharge, renew, reserve, settle } from '../quota/quota.ts';
import { rateLimitHeaders } from '../quota/rate-limit-headers.ts';
import type { QuotaState, Subject } from '../quota/state.ts';
import { AlarmClock } from './alarm-clock.ts';
import { BlockList } from './block-list.ts';
import { HomeSlices } from './home-slices.ts';
import { LimiterStorage, type OpenReservation, openReservation } from './limiter-storage.ts';
import { recordAfter, UsageInquiry } from './usage-inquiry.ts';

/** Id of the tenant among its limiter's subjects. The other subjects are its keys. */
const TENANT = 'tenant';
/** Usage records wait this long, so that they go to the ledger together. */
const FLUSH_DELAY_MS = 500;
const FLUSH_RETRY_MAX_MS = 60_000;
/** Settlements wait this long for others, because a commit costs more than a settlement. No response waits for it. */
const SETTLE_DELAY_MS = 20;
/** A Worker may settle its request for this many lifetimes after expiry. Then the limiter asks the upstream. */
const ABANDON_LIFETIMES = 4;
/** By then, an upstream has usually noticed that its reader has disconnected. */
const INQUIRE_AFTER_MS = 250;

/**
 * The home limiter, one per tenant. Holds the tenant's counters in memory and in its own SQLite database, and decides
 * reservations one after the other. Its alarm expires reservations and empties the usage outbox.
 */
export class TenantLimiter extends DurableObject<Env> implements TenantLimiterRpc {
  readonly #storage: LimiterStorage;
  readonly #quota: QuotaState;
  readonly #open: Map<string, OpenReservation>;
  readonly #blocked: BlockList;
  readonly #slices: HomeSlices;
  readonly #clock: AlarmClock;
  readonly #inquiry: UsageInquiry;
  /** Records of settled requests that are not written yet. */
  #settled: UsageRecord[] = [];
  /** Subjects whose counters are not written yet. */
  readonly #touched = new Set<string>();
  #writing: Promise<void> | null = null;
  #flushAt: number | null;
  /** Unix milliseconds at which the limiter asks upstreams about ended requests. */
  #inquireAt: number | null = null;
  #failures = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#clock = new AlarmClock(ctx.storage);
    this.#inquiry = new UsageInquiry(env);
    this.#storage = new LimiterStorage(ctx.storage.sql, this.#clock.now());
    this.#open = this.#storage.loadOpen();
    this.#quota = this.#storage.loadQuota(this.#open);
    this.#blocked = new BlockList(ctx.storage.sql);
    this.#slices = this.#loadSlices();
    this.#flushAt = this.#storage.outboxIsEmpty() ? null : this.#clock.now();
    ctx.blockConcurrencyWhile(() => this.#scheduleAlarm());
  }

  /** Applies the settlements, then reserves all that the request needs, or nothing. Idempotent per request id. */
  async reserve(
    request: ReservationRequest,
    settlements: readonly SettlementRequest[],
  ): Promise<ReservationResult> {
    const now = this.#clock.now();
    this.#slices.endDue(now);
    for (const settlement of settlements) this.#settle(settlement);
    const result = this.#reserve(request, now);
    this.#write();
    await this.#clock.ringBy(result.admitted ? now + request.ttlMs : null, this.#flushAt, this.#inquireAt);
    return result;
  }

  /** Returns `x-ratelimit-*` headers; changes nothing. */
  async rateLimitHeaders(holder: LimitHolder): Promise<Record<string, string>> {
    return rateLimitHeaders(this.#quota, subjectsOf(holder), this.#clock.now());
  }

  #reserve(request: ReservationRequest, now: number): ReservationResult {
    const block = this.#blocked.of(request.keyId);
    if (block !== null) return { admitted: false, refusal: block, headers: {} };
    const subjects = subjectsOf(request);
    const headers = () => rateLimitHeaders(this.#quota, subjects, now);
    const open = this.#open.get(request.requestId);
    if (open && !request.raise) return { admitted: true, headers: headers() };
    if (request.raise && open?.abandonAt !== null) {
      return { admitted: false, refusal: 'expired', headers: headers() };
    }
    const claim = { id: request.requestId, subjects, tokens: request.tokens, ttlMs: request.ttlMs };
    const refusal = (request.raise ? raise : reserve)(this.#quota, claim, now);
    if (refusal) return { admitted: false, refusal, headers: headers() };
    const reservation = this.#quota.reservations.get(request.requestId)!;
    this.#keep(open ? { ...open, reservation } : openReservation(reservation, request, now));
    this.#touch(reservation.subjects);
    return { admitted: true, headers: headers() };
  }

  /** Applies a region's decisions and grants it new slices, in one commit. Null if a later sync arrived before. */
  async sync(sync: RegionSync): Promise<RegionSyncResult | null> {
    const result = this.#slices.sync(sync, this.#clock.now());
    this.#write();
    await this.#scheduleAlarm();
    return result;
  }

  /** Renews a reservation and records what was used so far. Returns false if the reservation has ended. */
  async renew(requestId: string, renewal: Renewal): Promise<boolean> {
    return this.#renew(requestId, renewal);
  }

  #renew(requestId: string, { ttlMs, ...progress }: Renewal): boolean {
    const open = this.#open.get(requestId);
    // A settlement may overtake the last renewal.
    if (open?.record.status !== 'abandoned') return false;
    const now = this.#clock.now();
    const alive = renew(this.#quota, requestId, now + ttlMs);
    // This Worker was unreachable for a while, and will settle its request itself.
    const abandonAt = open.abandonAt && now + ABANDON_LIFETIMES * ttlMs;
    const reservation = alive ? open.reservation : { ...open.reservation, expiresAt: now + ttlMs };
    this.#keep({ ...open, reservation, record: { ...open.record, ...progress }, abandonAt });
    return alive;
  }

  /** Settles requests and writes their records. Returns how many: requests that were settled before do not count. */
  async settle(settlements: readonly SettlementRequest[]): Promise<number> {
    const ended = settlements.filter((settlement) => this.#settle(settlement)).length;
    if (ended === 0) return 0;
    this.#writing ??= scheduler.wait(SETTLE_DELAY_MS).then(() => {
      this.#writing = null;
      this.#write();
      return this.#clock.ringBy(this.#flushAt, this.#inquireAt);
    });
    await this.#writing;
    return ended;
  }

  #settle({ requestId, settlement, inquire = false }: SettlementRequest): boolean {
    const open = this.#open.get(requestId);
    if (open === undefined) return false;
    const record = { ...open.record, ...settlement };
    if (inquire) {
      this.#inquireAt = this.#clock.now() + INQUIRE_AFTER_MS;
      this.#release({ ...open, record }, this.#inquireAt);
      // `#release` has stored the request without its reservation. Its counters must be stored in the same commit.
      this.#write();
    } else {
      this.#close(open, record);
    }
    return true;
  }

  /** Blocks or unblocks a key, or the tenant if `keyId` is null. Effective at once, in spite of the Workers' caches. */
  async block(keyId: string | null, blocked: boolean): Promise<void> {
    this.#blocked.set(keyId, blocked);
    const { REGIONS } = this.env;
    const regions = this.#slices.holders().map((id) => REGIONS.get(REGIONS.idFromString(id)));
    // An unreachable region loses its slices within seconds and gets no new ones.
    await Promise.allSettled(regions.map((region) => region.recall()));
  }

  async blockOf(keyId: string): Promise<Block | null> {
    return this.#blocked.of(keyId);
  }

  override async alarm(): Promise<void> {
    this.#clock.rang();
    const now = this.#clock.now();
    this.#slices.endDue(now);
    for (const id of dueReservations(this.#quota, now)) {
      const open = this.#open.get(id)!;
      this.#release(open, now + ABANDON_LIFETIMES * open.ttlMs);
    }
    this.#inquireAt = null;
    this.#write();
    const abandoned = [...this.#open.values()].filter(({ abandonAt }) => (abandonAt ?? now + 1) <= now);
    await Promise.all(abandoned.map((open) => this.#abandon(open, now)));
    this.#write();
    if (this.#flushAt !== null && this.#flushAt <= now) await this.#flush(now);
    await this.#scheduleAlarm();
  }

  #loadSlices(): HomeSlices {
    return new HomeSlices(this.#quota, this.#storage.loadRegions(), {
      isOpen: (requestId) => this.#open.has(requestId),
      open: (request, reservation, at) => this.#keep(openReservation(reservation, request, at)),
      settle: (settlement) => this.#settle(settlement),
      renew: (requestId, renewal) => this.#renew(requestId, renewal),
      reserve: (request, now) => this.#reserve(request, now),
      subjectsOf,
      isBlocked: (keyId) => this.#blocked.of(keyId) !== null,
      touch: (ids) => this.#touch(ids),
      saveRegion: (region, state) => this.#storage.saveRegion(region, state),
    });
  }

  #keep(open: OpenReservation): void {
    this.#open.set(open.reservation.id, open);
    this.#storage.saveOpen(open);
  }

  /** Frees what a request holds. Its record waits for its Worker or for its upstream's account. */
  #release(open: OpenReservation, abandonAt: number): void {
    const tokens = chargedTokens(open.record.usage);
    const held = settle(this.#quota, open.reservation.id, tokens) !== null;
    this.#keep({
      ...open,
      reservation: held ? { ...open.reservation, tokens } : open.reservation,
      abandonAt,
    });
    this.#touch(open.reservation.subjects);
  }

  /** Settles a request whose Worker is gone: by the upstream's account, otherwise by the Worker's last renewal. */
  async #abandon(open: OpenReservation, now: number): Promise<void> {
    const known = await this.#inquiry.ask(open);
    // The Worker may have settled the request in the meantime.
    if (this.#open.get(open.reservation.id) !== open) return;
    const { record, askAt } = recordAfter(open, known, now);
    if (askAt === null) this.#close(open, record);
    else this.#keep({ ...open, record, abandonAt: askAt });
  }

  #close(open: OpenReservation, record: UsageRecord): void {
    const tokens = chargedTokens(record.usage);
    if (open.abandonAt === null) settle(this.#quota, open.reservation.id, tokens);
    else recharge(this.#quota, open.reservation, tokens);
    this.#open.delete(open.reservation.id);
    this.#settled.push(record);
    this.#touch(open.reservation.subjects);
  }

  #touch(subjects: readonly string[]): void {
    for (const id of subjects) this.#touched.add(id);
  }

  /** Writes counters and records that belong together in the same commit. */
  #write(): void {
    if (this.#settled.length > 0) {
      this.#storage.close(this.#settled);
      this.#flushAt ??= this.#clock.now() + FLUSH_DELAY_MS;
    }
    if (this.#touched.size > 0) this.#storage.saveSubjects(this.#quota, [...this.#touched]);
    this.#settled = [];
    this.#touched.clear();
  }

  async #flush(now: number): Promise<void> {
    let more = false;
    try {
      more = await flushOutbox(this.#storage, this.env.USAGE_DB, this.env.USAGE);
      this.#failures = 0;
    } catch {
      // The records stay in the outbox. The database's error may quote them, so it is not logged.
      this.#failures += 1;
      console.error(JSON.stringify({ event: 'usage_flush_failed', failures: this.#failures }));
    }
    const delay = more ? 0 : Math.min(FLUSH_DELAY_MS * 2 ** this.#failures, FLUSH_RETRY_MAX_MS);
    this.#flushAt = this.#storage.outboxIsEmpty() ? null : now + delay;
  }

  /** Sets the alarm for reservations, slices, the outbox and abandoned requests. */
  #scheduleAlarm(): Promise<void> {
    const abandoned = [...this.#open.values()].map(({ abandonAt }) => abandonAt);
    return this.#clock.ringBy(nextExpiry(this.#quota), this.#slices.nextEnd(), this.#flushAt, ...abandoned);
  }
}

const subjectsOf = ({ keyId, tenantLimits, keyLimits }: LimitHolder): Subject[] => [
  { id: TENANT, limits: tenantLimits },
  { id: keyId, limits: keyLimits },
];
