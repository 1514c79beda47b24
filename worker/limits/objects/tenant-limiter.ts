import { DurableObject } from 'cloudflare:workers';
import { type Env, parseSettings } from '../../env.ts';
import { type Catalogue, createCatalogue, type KnownAccount } from '../../upstreams/pool.ts';
import { flushOutbox } from '../../usage/usage-outbox.ts';
import { chargedTokens, type UsageRecord } from '../../usage/usage-record.ts';
import type { Ending, Inquiry, Progress, Reservation, ReservationRequest } from '../protocol.ts';
import { dueLeases, nextExpiry, recharge, renew, reserve, settle } from '../quota/quota.ts';
import { rateLimitHeaders } from '../quota/rate-limit-headers.ts';
import type { QuotaState, Subject } from '../quota/state.ts';
import { AlarmClock } from './alarm-clock.ts';
import type { Exchange, ExchangeAnswer, Wish } from './exchange.ts';
import { firstRecord } from './first-record.ts';
import { HomeSlices } from './home-slices.ts';
import { LimiterStorage, type OpenRequest } from './limiter-storage.ts';

/** Id of the tenant itself among its limiter's subjects; keys have their own ids. */
const TENANT = 'tenant';
/** Records are gathered this long before they go to the ledger together. */
const FLUSH_DELAY_MS = 1000;
const FLUSH_RETRY_MAX_MS = 60_000;
/** Settlements wait this long for others: a commit costs more than a settlement, and nobody's answer depends on it. */
const SETTLE_TOGETHER_MS = 20;
/** A request whose lease has ended is settled by what its upstream says, unless its Worker says more within so many leases. */
const ABANDON_LEASES = 4;
/** An upstream that is out of reach then is asked again for so many leases: ten minutes of the usual ones, as long as origins remember. */
const ACCOUNT_LEASES = 20;
const ACCOUNT_TIMEOUT_MS = 5_000;
/** By then an upstream knows that its reader has left. */
const INQUIRE_AFTER_MS = 1_000;
/** A deployment's wrong variable is one more reason why no upstream answers. */
const NOBODY_ASKED: KnownAccount = { account: null, complete: false };

/**
 * One per tenant: holds its counters in memory and in its own SQLite, so that reservations of parallel requests are
 * decided one after the other, wherever the requests came in. Its alarm ends forgotten leases and empties the outbox.
 */
export class TenantLimiter extends DurableObject<Env> {
  readonly #storage: LimiterStorage;
  readonly #quota: QuotaState;
  readonly #open: Map<string, OpenRequest>;
  readonly #blocked: Set<string>;
  readonly #slices: HomeSlices;
  readonly #clock: AlarmClock;
  /** Ended, but not yet written. */
  #settled: UsageRecord[] = [];
  /** Subjects whose counters have changed since they were written. */
  readonly #touched = new Set<string>();
  #writing: Promise<void> | null = null;
  #catalogue: Catalogue | null = null;
  #flushAt: number | null;
  /** When the latest of the requests that have ended is to be asked about. */
  #inquireAt: number | null = null;
  #failures = 0;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#clock = new AlarmClock(ctx.storage);
    this.#storage = new LimiterStorage(ctx.storage.sql, this.#clock.now());
    this.#open = this.#storage.loadOpen();
    this.#quota = this.#storage.loadQuota(this.#open);
    this.#blocked = this.#storage.loadBlocked();
    this.#slices = this.#loadSlices();
    this.#flushAt = this.#storage.outboxIsEmpty() ? null : this.#clock.now();
    ctx.blockConcurrencyWhile(() => this.#scheduleAlarm());
  }

  /** Takes what the request needs, or nothing, once others have ended. The same request asked twice is one reservation. */
  async reserve(request: ReservationRequest, endings: readonly Ending[]): Promise<Reservation> {
    const now = this.#clock.now();
    this.#slices.endDue(now);
    for (const ending of endings) this.#settle(ending);
    const reservation = this.#reserve(request, now);
    this.#write();
    await this.#clock.ringBy(
      reservation.admitted ? now + request.leaseMs : null,
      this.#flushAt,
      this.#inquireAt,
    );
    return reservation;
  }

  /** How the limits stand; changes nothing. */
  async standing(inquiry: Inquiry): Promise<Record<string, string>> {
    return rateLimitHeaders(this.#quota, subjectsOf(inquiry), this.#clock.now());
  }

  #reserve(request: ReservationRequest, now: number): Reservation {
    if (this.#blocked.has(TENANT)) return { admitted: false, refusal: 'suspended', headers: {} };
    if (this.#blocked.has(request.keyId)) return { admitted: false, refusal: 'revoked', headers: {} };
    const subjects = subjectsOf(request);
    const headers = () => rateLimitHeaders(this.#quota, subjects, now);
    if (this.#open.has(request.requestId)) return { admitted: true, headers: headers() };
    const claim = { id: request.requestId, subjects, tokens: request.tokens, leaseMs: request.leaseMs };
    const refusal = reserve(this.#quota, claim, now);
    if (refusal) return { admitted: false, refusal, headers: headers() };
    const lease = this.#quota.leases.get(request.requestId)!;
    this.#keep({ lease, record: firstRecord(request, now), leaseMs: request.leaseMs, abandonAt: null });
    this.#touch(lease.subjects);
    return { admitted: true, headers: headers() };
  }

  /** A region tells what it has admitted and settled by itself, and asks for more. Read and answered in one commit. */
  async exchange(exchange: Exchange): Promise<ExchangeAnswer | null> {
    const answer = this.#slices.exchange(exchange, this.#clock.now());
    this.#write();
    await this.#scheduleAlarm();
    return answer;
  }

  /** A sign of life, with what was used so far; false when the lease has already ended. */
  async renew(requestId: string, progress: Progress): Promise<boolean> {
    return this.#renew(requestId, progress);
  }

  #renew(requestId: string, { leaseMs, ...progress }: Progress): boolean {
    const open = this.#open.get(requestId);
    // The end of a request may overtake its last sign of life.
    if (open?.record.status !== 'abandoned') return false;
    const now = this.#clock.now();
    const alive = renew(this.#quota, requestId, now + leaseMs);
    // A Worker that is back after its lease has ended will tell how its request ends.
    const abandonAt = open.abandonAt && now + ABANDON_LEASES * leaseMs;
    const lease = alive ? open.lease : { ...open.lease, expiresAt: now + leaseMs };
    this.#keep({ ...open, lease, record: { ...open.record, ...progress }, abandonAt });
    return alive;
  }

  /** Ends requests and writes their records. Tells how many; those that had ended before are left as they are. */
  async settle(endings: readonly Ending[]): Promise<number> {
    const ended = endings.filter((ending) => this.#settle(ending)).length;
    if (ended === 0) return 0;
    this.#writing ??= scheduler.wait(SETTLE_TOGETHER_MS).then(() => {
      this.#writing = null;
      this.#write();
      return this.#clock.ringBy(this.#flushAt, this.#inquireAt);
    });
    await this.#writing;
    return ended;
  }

  #settle({ requestId, settlement, inquire = false }: Ending): boolean {
    const open = this.#open.get(requestId);
    if (open === undefined) return false;
    const record = { ...open.record, ...settlement };
    if (inquire) {
      this.#inquireAt = this.#clock.now() + INQUIRE_AFTER_MS;
      this.#release({ ...open, record }, this.#inquireAt);
      // Without its lease a request is stored at once: so must be the counters it was released from.
      this.#write();
    } else {
      this.#close(open, record);
    }
    return true;
  }

  /** Refuses a key, or the whole tenant, from this moment on, whatever any cache still says. */
  async block(keyId: string | null, blocked: boolean): Promise<void> {
    const id = keyId ?? TENANT;
    if (blocked) this.#blocked.add(id);
    else this.#blocked.delete(id);
    this.#storage.setBlocked(id, blocked);
    const { REGIONS } = this.env;
    // A region out of reach asks for its next slice within seconds, and gets none.
    await Promise.allSettled(
      this.#slices.holders().map((region) => REGIONS.get(REGIONS.idFromString(region)).recall()),
    );
  }

  override async alarm(): Promise<void> {
    this.#clock.rang();
    const now = this.#clock.now();
    this.#slices.endDue(now);
    for (const id of dueLeases(this.#quota, now)) {
      const open = this.#open.get(id)!;
      this.#release(open, now + ABANDON_LEASES * open.leaseMs);
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
      open: (request, lease, at) =>
        this.#keep({ lease, record: firstRecord(request, at), leaseMs: request.leaseMs, abandonAt: null }),
      settle: (ending) => this.#settle(ending),
      renew: (requestId, progress) => this.#renew(requestId, progress),
      reserve: (request, now) => this.#reserve(request, now),
      subjectsOf,
      isBlocked: (keyId) => this.#blocked.has(TENANT) || this.#blocked.has(keyId),
      touch: (ids) => this.#touch(ids),
      saveRegion: (region, state) => this.#storage.saveRegion(region, state),
    });
  }

  #keep(open: OpenRequest): void {
    this.#open.set(open.lease.id, open);
    this.#storage.saveOpen(open);
  }

  /** Frees what a request holds; its record waits for a Worker that was only out of reach, or for its upstream. */
  #release(open: OpenRequest, abandonAt: number): void {
    const tokens = chargedTokens(open.record.usage);
    const held = settle(this.#quota, open.lease.id, tokens) !== null;
    this.#keep({ ...open, lease: held ? { ...open.lease, tokens } : open.lease, abandonAt });
    this.#touch(open.lease.subjects);
  }

  /** Nobody will tell any more: the upstream's own account counts, or what the Worker told last where there is none. */
  async #abandon(open: OpenRequest, now: number): Promise<void> {
    const { account, complete } = await this.#accountOf(open).catch(() => NOBODY_ASKED);
    // Its Worker may have come back meanwhile.
    if (this.#open.get(open.lease.id) !== open) return;
    const { usage, finishReasons } = account ?? open.record;
    const { status, startedAt } = open.record;
    const latencyMs = status === 'abandoned' ? now - startedAt : open.record.latencyMs;
    const firstTokenMs = open.record.firstTokenMs ?? account?.firstTokenMs ?? null;
    const record = { ...open.record, usage, finishReasons, latencyMs, firstTokenMs };
    const late = now >= open.lease.expiresAt + ACCOUNT_LEASES * open.leaseMs;
    const final = account?.ended !== false && (complete || late);
    if (final) this.#close(open, record);
    else this.#keep({ ...open, record, abandonAt: now + open.leaseMs });
  }

  async #accountOf({ lease, record }: OpenRequest): Promise<KnownAccount> {
    this.#catalogue ??= createCatalogue(this.env, parseSettings(this.env), Date.now);
    // Who served a request that has ended is known; one whose Worker vanished may have gone on elsewhere since.
    const upstream = record.status === 'abandoned' ? null : record.upstream;
    return this.#catalogue.usageOf(lease.id, upstream, AbortSignal.timeout(ACCOUNT_TIMEOUT_MS));
  }

  #close(open: OpenRequest, record: UsageRecord): void {
    const tokens = chargedTokens(record.usage);
    if (open.abandonAt === null) settle(this.#quota, open.lease.id, tokens);
    else recharge(this.#quota, open.lease, tokens);
    this.#open.delete(open.lease.id);
    this.#settled.push(record);
    this.#touch(open.lease.subjects);
  }

  #touch(subjects: readonly string[]): void {
    for (const id of subjects) this.#touched.add(id);
  }

  /** Counters and records that belong together are written together, in the commit of whatever called. */
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
      more = await flushOutbox(this.#storage, this.env.DB, this.env.USAGE);
      this.#failures = 0;
    } catch {
      // The records stay in the outbox. The database's error may quote what was written, so only the fact is logged.
      this.#failures += 1;
      console.error(JSON.stringify({ event: 'usage_flush_failed', failures: this.#failures }));
    }
    const delay = more ? 0 : Math.min(FLUSH_DELAY_MS * 2 ** this.#failures, FLUSH_RETRY_MAX_MS);
    this.#flushAt = this.#storage.outboxIsEmpty() ? null : now + delay;
  }

  /** For leases, slices, the ledger, and requests whose truth may still come. */
  #scheduleAlarm(): Promise<void> {
    const abandoned = [...this.#open.values()].map(({ abandonAt }) => abandonAt);
    return this.#clock.ringBy(nextExpiry(this.#quota), this.#slices.nextEnd(), this.#flushAt, ...abandoned);
  }
}

const subjectsOf = ({ keyId, tenantLimits, keyLimits }: Wish): Subject[] => [
  { id: TENANT, limits: tenantLimits },
  { id: keyId, limits: keyLimits },
];
