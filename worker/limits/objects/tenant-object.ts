import { DurableObject } from 'cloudflare:workers';
import type { Block, LimiterCall, LimiterReply } from '../quota/protocol.ts';
import { useOf } from '../quota/state.ts';
import type { PlaceClaim, TenantLimiterRpc, TenantQuestion, TenantReplies } from '../tenant-rpc.ts';
import { EventQueue, type OutgoingEvent } from '../usage/event-queue.ts';
import { recordIn } from '../usage/request-records.ts';
import { TenantLedger } from '../usage/tenant-ledger.ts';
import { writePoints } from '../usage/usage-points.ts';
import { AlarmClock } from './alarm-clock.ts';
import { BlockList } from './block-list.ts';
import { EventSender } from './event-sender.ts';
import { IsolateCalls } from './isolate-calls.ts';
import { IsolateSlices } from './isolate-slices.ts';
import { Journal } from './journal.ts';
import { LimitAlerts } from './limit-alerts.ts';
import type { LimiterPorts } from './limiter-ports.ts';
import { LimiterStorage } from './limiter-storage.ts';
import { LostIsolates } from './lost-isolates.ts';
import { billedRecords, OldDeliveries } from './old-deliveries.ts';
import { OpenRequests } from './open-requests.ts';
import type { OpenReservation } from './open-reservation.ts';
import { PlaceClaims } from './place-claims.ts';
import { TENANT } from './stored-counters.ts';
import { UsageDuties } from './usage-duties.ts';
import { recordAfter } from './usage-inquiry.ts';
import { UsageMove } from './usage-move.ts';

/** Key of the stored erasure. */
const ERASURE = 'erasure';
/** A final erasure that has failed is repeated after this time. */
const ERASE_AGAIN_MS = 60_000;

interface Erasure {
  readonly tenantId: string;
  /** Unix milliseconds after which all data is deleted. */
  readonly at: number;
  readonly keepSums: boolean;
}

/**
 * The object of a tenant. Holds the tenant's counters in memory and in its own SQLite database, and
 * decides reservations one after the other. Ended requests are in its ledger, in the same commit. Its alarm
 * expires reservations, reports usage and deletes what is old.
 */
export class TenantObject<E> extends DurableObject<E> implements TenantLimiterRpc {
  readonly #ports: LimiterPorts;
  readonly #clock: AlarmClock;
  readonly #ledger: TenantLedger;
  readonly #storage: LimiterStorage;
  readonly #duties: UsageDuties;
  readonly #move: UsageMove;
  readonly #blocked: BlockList;
  readonly #requests: OpenRequests;
  readonly #slices: IsolateSlices;
  readonly #calls: IsolateCalls;
  readonly #lost: LostIsolates;
  readonly #alerts: LimitAlerts;
  readonly #billing: EventQueue;
  readonly #sender: EventSender;
  readonly #places = new PlaceClaims();
  /** Null = the tenant exists. */
  #erasure: Erasure | null;
  /** This object has deleted its data, tables included. In memory, the tenant stays blocked. */
  #isErased = false;

  constructor(ctx: DurableObjectState, env: E, ports: LimiterPorts) {
    super(ctx, env);
    this.#ports = ports;
    const { sql, kv } = ctx.storage;
    const { settings, db, oldDb } = ports;
    this.#clock = new AlarmClock(ctx.storage);
    this.#ledger = new TenantLedger(sql);
    const now = () => this.#clock.now();
    const old = new OldDeliveries(sql);
    // Billing reads the records from where they are stored.
    const requestsAt = () => (settings.REQUEST_DAYS > 0 || this.#billing?.isWaiting ? now() : null);
    this.#storage = new LimiterStorage(sql, this.#ledger, requestsAt, old.last);
    this.#alerts = new LimitAlerts(sql, {
      shares: settings.ALERT_SHARES,
      counters: this.#storage.counters,
      old,
      now,
    });
    const isBilled = settings.BILLING_URL !== undefined;
    const records = billedRecords(this.#storage, old);
    this.#billing = new EventQueue(sql, 'usage', records, isBilled, old.stateOf('usage'));
    const webhook = new EventQueue(sql, 'alert', this.#alerts, true, old.stateOf('alert'));
    this.#alerts.undelivered = () => webhook.undelivered;
    const onTaken = (events: readonly OutgoingEvent[]) => {
      old.delete(events);
      if (settings.REQUEST_DAYS === 0)
        this.#ledger.requests.prune(Number.MAX_SAFE_INTEGER, this.#billing.undelivered);
    };
    this.#sender = new EventSender([webhook, this.#billing], { deliver: ports.deliver, now, onTaken });
    const stores = { ledger: this.#ledger, storage: this.#storage };
    this.#move = new UsageMove({ ...stores, sql, kv, db: oldDb, now });
    this.#duties = new UsageDuties(kv, {
      ...stores,
      move: this.#move,
      db,
      usageDays: settings.USAGE_DAYS,
      requestDays: settings.REQUEST_DAYS,
      reportWithinMs: settings.USAGE_REPORT_MS,
      kept: () => this.#billing.undelivered,
      phase: Math.random(),
      now,
    });
    this.#blocked = new BlockList(sql, this.#clock.now());
    this.#requests = new OpenRequests(this.#storage, this.#blocked);
    this.#slices = new IsolateSlices(this.#requests, this.#storage, this.#alerts);
    this.#calls = new IsolateCalls(this.#slices, this.#requests);
    this.#lost = new LostIsolates(this.#slices, this.#requests);
    this.#erasure = kv.get<Erasure>(ERASURE) ?? null;
    ctx.blockConcurrencyWhile(async () => {
      await this.#clock.load();
      await this.#scheduleAlarm();
    });
  }

  /**
   * Applies what an isolate has decided, then decides its reservation (all that the request needs, or
   * nothing) and grants it slices, in one commit. Idempotent per request id and decision.
   */
  async exchange(call: LimiterCall): Promise<LimiterReply> {
    const now = this.#clock.now();
    const reply = this.#calls.exchange(call, now);
    this.#write();
    const { open, isolates } = this.#storage;
    const due = [open.firstDue, isolates.firstDue, this.#sender.nextDue()];
    await this.#clock.ringBy(...due, ...this.#duties.nextDue());
    return reply;
  }

  /**
   * Blocks or unblocks a key, or the tenant if `keyId` is null, in spite of the Workers' caches. Isolates
   * that hold slices learn it with their next call.
   */
  async block(keyId: string | null, blocked: boolean): Promise<void> {
    this.#blocked.set(keyId, blocked, this.#clock.now());
  }

  async erase(tenantId: string, afterMs: number, keepSums: boolean): Promise<void> {
    const at = this.#erasure?.at ?? this.#clock.now() + afterMs;
    this.#erasure = { tenantId, at, keepSums };
    if (!this.#isErased) {
      await this.block(null, true);
      this.ctx.storage.kv.put(ERASURE, this.#erasure);
      await this.#duties.ready(tenantId, true);
    }
    await this.#move.erase(tenantId);
    await this.#eraseUsage(this.#erasure);
    await this.#scheduleAlarm();
  }

  /** Erases the records so far, here and in the summary. @throws what the database throws */
  async #eraseUsage({ tenantId, keepSums }: Erasure): Promise<void> {
    if (this.#isErased) this.#createLedger();
    else this.#storage.checkpoint();
    this.#ledger.erase(keepSums, this.#storage.number, this.#isErased ? [] : this.#billing.undelivered);
    await this.#duties.reportNow(tenantId);
  }

  async blockOf(keyId: string): Promise<Block | null> {
    return this.#blocked.of(keyId);
  }

  async ask(question: TenantQuestion): Promise<TenantReplies[TenantQuestion['kind']]> {
    switch (question.kind) {
      case 'use':
        return this.#use(question.keyId);
      case 'deadEvents':
        return this.#sender.dead(question.limit, question.after);
      default:
        await this.#duties.ready(question.tenantId, question.kind === 'move');
        await this.#scheduleAlarm();
        return question.kind === 'move' ? null : this.#askLedger(question);
    }
  }

  #use(keyId: string): TenantReplies['use'] {
    const of = (id: string) => useOf(this.#storage.counters, id, this.#clock.now());
    return { tenant: of(TENANT), key: of(keyId), alerts: this.#alerts.alertsOf(keyId) };
  }

  #askLedger(
    question: Extract<TenantQuestion, { readonly kind: 'usage' | 'request' | 'requests' | 'lastUses' }>,
  ) {
    if (this.#isErased) this.#createLedger();
    const { records } = this.#storage;
    if (question.kind === 'requests') return this.#storage.recordsBefore(question.before, question.limit);
    if (question.kind === 'request')
      return recordIn(records, question.name) ?? this.#ledger.requests.find(question.name);
    if (records.length > 0) this.#storage.checkpoint();
    return question.kind === 'usage'
      ? this.#ledger.query(question, question.tenantId)
      : this.#ledger.lastUses(question.keyIds);
  }

  async paid(credit: number, at: number): Promise<void> {
    this.#alerts.paid(credit, at);
  }

  async claim(claim: PlaceClaim): Promise<boolean> {
    return this.#places.take(claim, this.#clock.now());
  }

  async replayEvents(): Promise<number> {
    const count = this.#sender.replay();
    await this.#scheduleAlarm();
    return count;
  }

  override async alarm(): Promise<void> {
    this.#clock.rang();
    const now = this.#clock.now();
    this.#slices.endDue(now);
    this.#requests.releaseDue(now);
    this.#write();
    if (this.#duties.tidy(now)) this.#alerts.forget(this.#storage.counters.dropUnused(now));
    await Promise.all(this.#slices.lost(now).map((isolate) => this.#settleLost(isolate)));
    await Promise.all(this.#requests.abandoned(now).map((open) => this.#inquire(open, now)));
    if ((this.#sender.nextDue() ?? now + 1) <= now) this.#alone(this.#sender.send());
    this.#alone(this.#duties.report(now));
    const { at } = this.#erasure ?? { at: Infinity };
    // What is being sent may have to be sent again. The alarm is set when it has ended.
    if (at > now || this.#isErased || this.#nextWork() !== null || this.#sender.isWaiting) {
      await this.#scheduleAlarm();
      return;
    }
    await this.#deleteAll(this.#erasure!).catch(() => this.#clock.ringBy(now + ERASE_AGAIN_MS));
  }

  /** Deletes all data but the sums that are kept. @throws what the database throws */
  async #deleteAll(erasure: Erasure): Promise<void> {
    await this.#eraseUsage(erasure);
    const [rows, { number, lastRecord }] = [this.#ledger.rows(), this.#storage];
    this.#isErased = true;
    await this.ctx.storage.deleteAll();
    if (rows.length === 0) return;
    this.#createLedger();
    for (const row of rows) this.#ledger.addSums(row);
    new Journal(this.ctx.storage.sql).resume(number, lastRecord);
  }

  /** Creates the ledger's tables again, which an erasure has deleted. */
  #createLedger(): void {
    new TenantLedger(this.ctx.storage.sql);
  }

  /** Other servers must not delay reservations and alarms. */
  #alone(work: Promise<void>): void {
    this.ctx.waitUntil(work.then(() => this.#scheduleAlarm()));
  }

  /** Settles the requests of a lost isolate. */
  async #settleLost(isolate: string): Promise<void> {
    const accounts = await this.#ports.accountsUnder(`${isolate}.`);
    this.#lost.settle(isolate, accounts, this.#clock.now());
    this.#write();
  }

  /** Settles a request whose Worker is gone: by the upstream's account, else the last renewal. */
  async #inquire(open: OpenReservation, now: number): Promise<void> {
    const { record: last, reservation } = open;
    // If the Worker vanished, the request may have moved to another upstream, so the limiter asks all.
    const upstream = last.status === 'abandoned' ? null : last.upstream;
    const account = await this.#ports.usageOf(reservation.id, upstream);
    // The Worker may have settled the request in the meantime.
    if (!this.#requests.isCurrent(open)) return;
    const { record, askAt } = recordAfter(open, account, now);
    if (askAt === null) this.#requests.close(open, record);
    else this.#requests.postpone(open, record, askAt);
    this.#write();
  }

  /** Stores all changes. To be called before anything else can happen. */
  #write(): void {
    const ended = this.#storage.commit();
    if (ended.length === 0) return;
    this.#alerts.add(ended);
    this.#duties.note(ended[0]!.tenantId);
    const { points } = this.#ports;
    if (points) writePoints(points, ended);
  }

  /** Sets the alarm for everything that is to be done. */
  async #scheduleAlarm(): Promise<void> {
    if (this.#isErased) return;
    await this.#clock.ringBy(this.#nextWork(), this.#erasure?.at ?? null, ...this.#duties.nextDue());
  }

  /** Returns when the next thing is to be done for requests and events; null = nothing waits. */
  #nextWork(): number | null {
    const { open, isolates } = this.#storage;
    const first = Math.min(open.nextDue(), isolates.nextDue(), this.#sender.nextDue() ?? Infinity);
    return first === Infinity ? null : first;
  }
}
