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
import { rateLimitHeaders } from '../quota/rate-limit-headers.ts';
import { AlarmClock } from './alarm-clock.ts';
import { BlockList } from './block-list.ts';
import { HomeSlices } from './home-slices.ts';
import { LimiterStorage, type OpenReservation } from './limiter-storage.ts';
import { OpenRequests, subjectsOf } from './open-requests.ts';
import { recordAfter, UsageInquiry } from './usage-inquiry.ts';

/** Usage records wait this long, so that they go to the ledger together. */
const FLUSH_DELAY_MS = 500;
const FLUSH_RETRY_MAX_MS = 60_000;
/** Settlements wait this long for others, because a commit costs more than a settlement. No response waits for it. */
const SETTLE_DELAY_MS = 20;
/** By then, an upstream has usually noticed that its reader has disconnected. */
const INQUIRE_AFTER_MS = 250;

/**
 * The home limiter, one per tenant. Holds the tenant's counters in memory and in its own SQLite database, and decides
 * reservations one after the other. Its alarm expires reservations and empties the usage outbox.
 */
export class TenantLimiter extends DurableObject<Env> implements TenantLimiterRpc {
  readonly #storage: LimiterStorage;
  readonly #blocked: BlockList;
  readonly #requests: OpenRequests;
  readonly #slices: HomeSlices;
  readonly #clock: AlarmClock;
  readonly #inquiry: UsageInquiry;
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
    this.#blocked = new BlockList(ctx.storage.sql);
    this.#requests = new OpenRequests(this.#storage, this.#blocked);
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
    const result = this.#requests.reserve(request, now);
    this.#write();
    const expiresAt = result.admitted && !request.probe ? now + request.ttlMs : null;
    await this.#clock.ringBy(expiresAt, this.#flushAt, this.#inquireAt);
    return result;
  }

  /** Returns `x-ratelimit-*` headers; changes nothing. */
  async rateLimitHeaders(holder: LimitHolder): Promise<Record<string, string>> {
    return rateLimitHeaders(this.#requests.quota, subjectsOf(holder), this.#clock.now());
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
    const alive = this.#requests.renew(requestId, renewal, this.#clock.now());
    this.#write();
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

  #settle(request: SettlementRequest): boolean {
    const inquireAt = request.inquire ? this.#clock.now() + INQUIRE_AFTER_MS : null;
    const ended = this.#requests.settle(request, inquireAt);
    if (ended && inquireAt !== null) this.#inquireAt = inquireAt;
    return ended;
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
    this.#requests.releaseDue(now);
    this.#inquireAt = null;
    this.#write();
    await Promise.all(this.#requests.abandoned(now).map((open) => this.#inquire(open, now)));
    this.#write();
    if (this.#flushAt !== null && this.#flushAt <= now) await this.#flush(now);
    await this.#scheduleAlarm();
  }

  #loadSlices(): HomeSlices {
    const requests = this.#requests;
    return new HomeSlices(requests.quota, this.#storage.loadRegions(), {
      isOpen: (requestId) => requests.has(requestId),
      open: (request, reservation, at) => requests.add(request, reservation, at),
      settle: (settlement) => this.#settle(settlement),
      renew: (requestId, renewal) => requests.renew(requestId, renewal, this.#clock.now()),
      reserve: (request, now) => requests.reserve(request, now),
      subjectsOf,
      isBlocked: (keyId) => this.#blocked.of(keyId) !== null,
      touch: (subjects) => requests.touch(subjects),
      saveRegion: (region, state) => this.#storage.saveRegion(region, state),
    });
  }

  /** Settles a request whose Worker is gone: by the upstream's account, otherwise by the Worker's last renewal. */
  async #inquire(open: OpenReservation, now: number): Promise<void> {
    const known = await this.#inquiry.ask(open);
    // The Worker may have settled the request in the meantime.
    if (!this.#requests.isCurrent(open)) return;
    const { record, askAt } = recordAfter(open, known, now);
    if (askAt === null) this.#requests.close(open, record);
    else this.#requests.postpone(open, record, askAt);
  }

  #write(): void {
    if (this.#requests.write()) this.#flushAt ??= this.#clock.now() + FLUSH_DELAY_MS;
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
    return this.#clock.ringBy(this.#slices.nextEnd(), this.#flushAt, ...this.#requests.nextDue());
  }
}
