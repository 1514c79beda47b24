import { DurableObject } from 'cloudflare:workers';
import type { DeadEvent } from '../../delivery/delivery-queue.ts';
import type { Env } from '../../env/env.ts';
import type {
  Block,
  LimiterAnswer,
  LimiterCall,
  PlaceClaim,
  SettlementRequest,
  SubjectUse,
  TenantLimiterRpc,
} from '../../env/limiter-protocol.ts';
import { parseSettings } from '../../env/settings.ts';
import { flushOutbox } from '../../usage/usage-outbox.ts';
import { useOf } from '../quota/state.ts';
import { AlarmClock } from './alarm-clock.ts';
import { BlockList } from './block-list.ts';
import { HomeEvents } from './home-events.ts';
import { HomeSlices } from './home-slices.ts';
import { LimiterStorage, type OpenReservation } from './limiter-storage.ts';
import { OpenRequests, subjectsOf, TENANT } from './open-requests.ts';
import { PlaceClaims } from './place-claims.ts';
import { recordAfter, UsageInquiry } from './usage-inquiry.ts';

/** Usage records wait this long, so that they go to the ledger together. */
const FLUSH_DELAY_MS = 500;
const FLUSH_RETRY_MAX_MS = 60_000;
/** Key of the stored time of erasure. */
const ERASE_AT = 'eraseAt';
/** By then, an upstream has usually noticed that its reader has disconnected. */
const INQUIRE_AFTER_MS = 250;

/**
 * The home limiter, one per tenant. Holds the tenant's counters in memory and in its own SQLite database, and
 * decides reservations one after the other. Its alarm expires reservations and empties the usage outbox.
 */
export class TenantLimiter extends DurableObject<Env> implements TenantLimiterRpc {
  readonly #storage: LimiterStorage;
  readonly #blocked: BlockList;
  readonly #requests: OpenRequests;
  readonly #slices: HomeSlices;
  readonly #events: HomeEvents;
  readonly #clock: AlarmClock;
  readonly #inquiry: UsageInquiry;
  readonly #keepRequests: boolean;
  readonly #places = new PlaceClaims();
  #flushAt: number | null;
  /** Unix milliseconds at which the limiter asks upstreams about ended requests. */
  #inquireAt: number | null = null;
  /** Unix milliseconds at which the first reservation of the current call expires. */
  #firstExpiry: number | null = null;
  #failures = 0;
  /** Unix milliseconds after which all data is deleted; null = the tenant exists. */
  #eraseAt: number | null = null;
  /** This object has deleted its data, tables included. In memory, the tenant stays blocked. */
  #isErased = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#clock = new AlarmClock(ctx.storage);
    this.#inquiry = new UsageInquiry(env);
    const settings = parseSettings(env);
    this.#keepRequests = settings.REQUEST_DAYS > 0;
    this.#storage = new LimiterStorage(ctx.storage.sql, this.#clock.now());
    this.#blocked = new BlockList(ctx.storage.sql, this.#clock.now());
    this.#requests = new OpenRequests(this.#storage, this.#blocked);
    this.#events = new HomeEvents(ctx.storage.sql, { env, settings, now: () => this.#clock.now() });
    this.#slices = this.#loadSlices();
    this.#flushAt = this.#storage.outboxIsEmpty() ? null : this.#clock.now();
    ctx.blockConcurrencyWhile(async () => {
      this.#eraseAt = (await ctx.storage.get<number>(ERASE_AT)) ?? null;
      await this.#scheduleAlarm();
    });
  }

  /**
   * Applies what an isolate has decided, then decides its reservation (all that the request needs, or
   * nothing) and grants it slices, in one commit. Idempotent per request id and decision.
   */
  async exchange(call: LimiterCall): Promise<LimiterAnswer> {
    const now = this.#clock.now();
    this.#firstExpiry = null;
    const answer = this.#slices.exchange(call, now);
    this.#write();
    const due = [this.#firstExpiry, this.#slices.nextEnd(), this.#flushAt, this.#inquireAt];
    await this.#clock.ringBy(...due, this.#events.nextDue());
    return answer;
  }

  #settle(request: SettlementRequest): void {
    const inquireAt = request.inquire ? this.#clock.now() + INQUIRE_AFTER_MS : null;
    if (this.#requests.settle(request, inquireAt) && inquireAt !== null) this.#inquireAt = inquireAt;
  }

  /**
   * Blocks or unblocks a key, or the tenant if `keyId` is null, in spite of the Workers' caches. Isolates
   * that hold slices learn it with their next call.
   */
  async block(keyId: string | null, blocked: boolean): Promise<void> {
    this.#blocked.set(keyId, blocked, this.#clock.now());
  }

  async erase(afterMs: number): Promise<void> {
    if (this.#isErased) return;
    await this.block(null, true);
    this.#eraseAt ??= this.#clock.now() + afterMs;
    await this.ctx.storage.put(ERASE_AT, this.#eraseAt);
    await this.#scheduleAlarm();
  }

  async blockOf(keyId: string): Promise<Block | null> {
    return this.#blocked.of(keyId);
  }

  async use(keyId: string): Promise<SubjectUse> {
    const of = (id: string) => useOf(this.#requests.quota, id, this.#clock.now());
    return { tenant: of(TENANT), key: of(keyId), alerts: this.#events.alertsOf(keyId) };
  }

  async paid(credit: number, at: number): Promise<void> {
    this.#events.paid(credit, at, this.#requests.quota);
  }

  async claim(claim: PlaceClaim): Promise<boolean> {
    return this.#places.take(claim, this.#clock.now());
  }

  async deadEvents(limit: number, after: string): Promise<DeadEvent[]> {
    return this.#events.queue.dead(limit, after);
  }

  async replayEvents(): Promise<number> {
    const count = this.#events.queue.replay(this.#clock.now());
    await this.#scheduleAlarm();
    return count;
  }

  override async alarm(): Promise<void> {
    this.#clock.rang();
    const now = this.#clock.now();
    this.#slices.endDue(now);
    this.#requests.releaseDue(now);
    this.#inquireAt = null;
    this.#write();
    this.#events.forget(this.#requests.dropUnused(now));
    await Promise.all(this.#slices.silent(now).map((isolate) => this.#giveUp(isolate)));
    this.#write();
    await Promise.all(this.#requests.abandoned(now).map((open) => this.#inquire(open, now)));
    this.#write();
    if (this.#flushAt !== null && this.#flushAt <= now) await this.#flush(now);
    if ((this.#events.nextDue() ?? now + 1) <= now) this.#sendEvents();
    if (this.#eraseAt === null || this.#eraseAt > now || this.#nextDue() !== null) {
      await this.#scheduleAlarm();
      return;
    }
    // What is being sent may have to be sent again. The alarm is set when it has ended.
    if (this.#events.queue.nextDue() !== null) return;
    this.#isErased = true;
    await this.ctx.storage.deleteAll();
  }

  /** An endpoint that hangs must not delay reservations and alarms. */
  #sendEvents(): void {
    this.ctx.waitUntil(this.#events.send().then(() => this.#scheduleAlarm()));
  }

  #loadSlices(): HomeSlices {
    const requests = this.#requests;
    return new HomeSlices(requests, this.#storage.loadIsolates(), {
      open: (request, reservation, at) => {
        requests.add(request, reservation, at);
        this.#expireBy(reservation.expiresAt);
      },
      settle: (settlement) => this.#settle(settlement),
      reserve: (request, now, slices) => {
        this.#events.know(subjectsOf(request), request.tenantId, requests.quota);
        const result = requests.reserve(request, now, slices);
        if (result.admitted && !request.probe) this.#expireBy(now + request.ttlMs);
        return result;
      },
      subjectsOf: (holder) => {
        const subjects = subjectsOf(holder);
        this.#events.know(subjects, holder.tenantId, requests.quota);
        return subjects;
      },
      isBlocked: (keyId) => this.#blocked.of(keyId) !== null,
      saveIsolate: (isolate, state) => this.#storage.saveIsolate(isolate, state),
    });
  }

  #expireBy(at: number): void {
    this.#firstExpiry = Math.min(this.#firstExpiry ?? at, at);
  }

  /** Settles the requests of an isolate that has been silent for too long. */
  async #giveUp(isolate: string): Promise<void> {
    const accounts = await this.#inquiry.under(`${isolate}.`);
    this.#slices.giveUp(isolate, accounts, this.#clock.now());
  }

  /** Settles a request whose Worker is gone: by the upstream's account, else the last renewal. */
  async #inquire(open: OpenReservation, now: number): Promise<void> {
    const account = await this.#inquiry.ask(open);
    // The Worker may have settled the request in the meantime.
    if (!this.#requests.isCurrent(open)) return;
    const { record, askAt } = recordAfter(open, account, now);
    if (askAt === null) this.#requests.close(open, record);
    else this.#requests.postpone(open, record, askAt);
  }

  #write(): void {
    const ended = this.#requests.write();
    this.#events.add(ended, this.#requests.quota);
    if (ended.length > 0) this.#flushAt ??= this.#clock.now() + FLUSH_DELAY_MS;
  }

  async #flush(now: number): Promise<void> {
    let more = false;
    try {
      more = await flushOutbox(this.#storage, this.env.USAGE_DB, this.env.USAGE, this.#keepRequests);
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
    return this.#clock.ringBy(this.#nextDue() ?? this.#eraseAt);
  }

  /** Returns when the next thing is to be done; null = nothing waits. */
  #nextDue(): number | null {
    const due = [this.#slices.nextEnd(), this.#flushAt, this.#events.nextDue(), ...this.#requests.nextDue()];
    return due.reduce((first, at) => (at === null ? first : Math.min(at, first ?? at)), null);
  }
}
