import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../../env/env.ts';
import type {
  LimitHolder,
  NumberedDecision,
  RegionDecision,
  RegionLimiterRpc,
  RegionSync,
  Renewal,
  ReservationRequest,
  ReservationResult,
  SettlementRequest,
  TenantLimiterRpc,
} from '../../env/limiter-protocol.ts';
import { AlarmClock } from './alarm-clock.ts';
import { RegionAdmission } from './region-admission.ts';

/** Decisions wait this long for others before the next sync. */
const SYNC_DELAY_MS = 200;
/** If the object restarts, its alarm starts the sync after this time. */
const RETRY_MS = 1000;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS journal (sequence INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS region (one INTEGER PRIMARY KEY, tenant TEXT NOT NULL, exchanges INTEGER NOT NULL);
`;

/** Stores a region's decisions until home has applied them. Written before the answer leaves. */
class DecisionLog {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(SCHEMA);
  }

  /** Id of the tenant; null before its first request. */
  tenant(): string | null {
    return this.#sql.exec<{ tenant: string }>('SELECT tenant FROM region').toArray()[0]?.tenant ?? null;
  }

  setTenant(tenant: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO region (one, tenant, exchanges) VALUES (1, ?, 0)', tenant);
  }

  append(decision: RegionDecision): void {
    this.#sql.exec('INSERT INTO journal (entry) VALUES (?)', JSON.stringify(decision));
  }

  /** Returns the decisions that home has not confirmed. */
  decisions(): NumberedDecision[] {
    return this.#sql
      .exec<{ sequence: number; entry: string }>('SELECT sequence, entry FROM journal ORDER BY sequence')
      .toArray()
      .map(({ sequence, entry }) => ({ sequence, decision: JSON.parse(entry) as RegionDecision }));
  }

  isEmpty(): boolean {
    return this.#sql.exec('SELECT 1 FROM journal LIMIT 1').toArray().length === 0;
  }

  /** Deletes all decisions up to this sequence number. */
  dropTo(sequence: number): void {
    this.#sql.exec('DELETE FROM journal WHERE sequence <= ?', sequence);
  }

  /** Returns the number of the next sync. */
  nextSync(): number {
    return this.#sql
      .exec<{ exchanges: number }>('UPDATE region SET exchanges = exchanges + 1 RETURNING exchanges')
      .one().exchanges;
  }
}

interface WaitingRequest {
  readonly request: ReservationRequest;
  resolve(result: ReservationResult): void;
  reject(reason: unknown): void;
}

/**
 * One per tenant and region, near the callers. Admits from regional slices of the tenant's budget and reports to the
 * tenant's home limiter afterwards. If no slice can pay for a request, home decides.
 */
export class RegionLimiter extends DurableObject<Env> implements RegionLimiterRpc {
  readonly #log: DecisionLog;
  readonly #admission = new RegionAdmission();
  readonly #clock: AlarmClock;
  #tenant: string | null;
  readonly #waiting: WaitingRequest[] = [];
  #syncing: Promise<void> | null = null;
  #nextSync: Promise<void> | null = null;
  #syncScheduled = false;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#log = new DecisionLog(ctx.storage.sql);
    this.#clock = new AlarmClock(ctx.storage);
    this.#tenant = this.#log.tenant();
  }

  /** Reserves all that the request needs, or nothing. */
  async reserve(
    request: ReservationRequest,
    settlements: readonly SettlementRequest[],
  ): Promise<ReservationResult> {
    this.#setTenant(request.tenantId);
    this.#settle(settlements);
    const result = this.#admit(request);
    if (!result) return this.#askHome(request);
    await this.#syncSoon();
    return result;
  }

  /** Returns `x-ratelimit-*` headers from the key's slice, otherwise from home. Changes nothing. */
  async rateLimitHeaders(holder: LimitHolder): Promise<Record<string, string>> {
    const here = this.#admission.rateLimitHeaders(holder.keyId, this.#clock.now());
    return here ?? (await this.#home(holder.tenantId).rateLimitHeaders(holder));
  }

  /** Renews a reservation. Home learns of it at the next sync. */
  async renew(requestId: string, renewal: Renewal): Promise<void> {
    this.#admission.renew(requestId, renewal);
    await this.#syncSoon();
  }

  /** Settles requests. Home applies each settlement exactly once. */
  async settle(settlements: readonly SettlementRequest[]): Promise<void> {
    this.#settle(settlements);
    await this.#syncSoon();
  }

  /** Drops all slices: home has blocked a key or the tenant. */
  async recall(): Promise<void> {
    this.#admission.recall();
    await this.#syncSoon();
  }

  override async alarm(): Promise<void> {
    this.#clock.rang();
    if (this.#tenant !== null) await this.#sync();
    await this.#scheduleAlarm();
  }

  #home(tenant: string): DurableObjectStub<TenantLimiterRpc> {
    const { LIMITER } = this.env;
    return LIMITER.get(LIMITER.idFromName(tenant));
  }

  #setTenant(tenant: string): void {
    if (this.#tenant !== null) return;
    this.#log.setTenant(tenant);
    this.#tenant = tenant;
  }

  #settle(settlements: readonly SettlementRequest[]): void {
    const now = this.#clock.now();
    for (const settlement of settlements) this.#log.append(this.#admission.settle(settlement, now));
  }

  #admit(request: ReservationRequest): ReservationResult | null {
    const admitted = this.#admission.admit(request, this.#clock.now());
    if (admitted?.decision) this.#log.append(admitted.decision);
    return admitted?.result ?? null;
  }

  /** Starts a sync in SYNC_DELAY_MS. The alarm does it if this object restarts before. */
  async #syncSoon(): Promise<void> {
    if (!this.#syncScheduled) {
      this.#syncScheduled = true;
      const sync = scheduler.wait(SYNC_DELAY_MS).then(() => {
        this.#syncScheduled = false;
        return this.#sync();
      });
      this.ctx.waitUntil(sync);
    }
    await this.#clock.ringBy(this.#clock.now() + RETRY_MS);
  }

  #askHome(request: ReservationRequest): Promise<ReservationResult> {
    const { promise, resolve, reject } = Promise.withResolvers<ReservationResult>();
    this.#waiting.push({ request, resolve, reject });
    this.ctx.waitUntil(this.#sync());
    return promise;
  }

  /** Runs one sync at a time. Calls during a sync share the next one. */
  #sync(): Promise<void> {
    if (!this.#syncing) {
      this.#syncing = this.#runSync().finally(() => {
        this.#syncing = null;
      });
      return this.#syncing;
    }
    this.#nextSync ??= this.#syncing.finally(() => {
      this.#nextSync = null;
      return this.#sync();
    });
    return this.#nextSync;
  }

  async #runSync(): Promise<void> {
    // Slices that arrived in the meantime may pay for some of these requests.
    const waiting = this.#waiting.splice(0).filter(({ request, resolve }) => {
      const result = this.#admit(request);
      if (result) resolve(result);
      return !result;
    });
    const sentAt = this.#clock.now();
    try {
      const sync: RegionSync = {
        region: this.ctx.id.toString(),
        number: this.#log.nextSync(),
        decisions: this.#log.decisions(),
        ...this.#admission.composeSync(
          waiting.map(({ request }) => request),
          sentAt,
        ),
      };
      const result = await this.#home(this.#tenant!).sync(sync);
      if (!result) throw new Error('A later sync arrived before this one.');
      this.#log.dropTo(result.cursor);
      // Returns the replaced slice to home without waiting for the next request.
      if (this.#admission.takeSlices(result, sentAt)) await this.#syncSoon();
      for (const [index, { resolve }] of waiting.entries()) resolve(result.reservations[index]!);
    } catch (thrown) {
      for (const { reject } of waiting) reject(thrown);
    }
    await this.#scheduleAlarm();
  }

  /** Sets the alarm for unconfirmed decisions and for the next slice that expires. */
  #scheduleAlarm(): Promise<void> {
    const retryAt = this.#log.isEmpty() ? null : this.#clock.now() + RETRY_MS;
    return this.#clock.ringBy(retryAt, this.#admission.nextExpiry());
  }
}
