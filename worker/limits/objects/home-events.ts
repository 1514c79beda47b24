import { sha256Hex } from '@continuo/shared/signing.ts';
import { UNLIMITED } from '@continuo/shared/tenant.ts';
import { type Delivery, send, tenantSecret } from '../../delivery/delivery.ts';
import { type Channel, DeliveryQueue, type QueuedEvent } from '../../delivery/delivery-queue.ts';
import { targetProblem } from '../../delivery/target.ts';
import type { Env } from '../../env/env.ts';
import type { SpendingAlert } from '../../env/limiter-protocol.ts';
import type { Settings } from '../../env/settings.ts';
import { readWebhook } from '../../tenants/webhook-store.ts';
import { usageEvent } from '../../usage/usage-event.ts';
import type { UsageRecord } from '../../usage/usage-record.ts';
import { isEndUser } from '../end-user.ts';
import { type QuotaState, type Subject, useOf } from '../quota/state.ts';
import { type Balance, reachedShares } from '../spending-alerts.ts';
import { TENANT } from './open-requests.ts';

const BATCH: Record<Channel, number> = { alert: 1, usage: 100 };
/** Alerts are forgotten after this time, except those of balances: no other limit lasts longer. */
const KEEP_MS = 40 * 86_400_000;

/**
 * What a tenant's home reports to others: alerts about limits of money, and billed requests. Events are
 * stored in the commit of the records from which they come, and sent later, at least once.
 */
export class HomeEvents {
  readonly queue: DeliveryQueue;
  readonly #sql: SqlStorage;
  readonly #env: Env;
  readonly #settings: Settings;
  readonly #now: () => number;
  /** The limits of the subjects that have called since the object started. */
  readonly #subjects = new Map<string, Subject>();
  #balance: Balance | null;
  #sending = false;

  /** @param now Unix milliseconds */
  constructor(
    sql: SqlStorage,
    { env, settings, now }: { readonly env: Env; readonly settings: Settings; readonly now: () => number },
  ) {
    this.#sql = sql;
    this.#env = env;
    this.#now = now;
    this.#settings = settings;
    this.queue = new DeliveryQueue(sql);
    sql.exec(`
      CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, at INTEGER NOT NULL, alert TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS balance (at INTEGER NOT NULL, credit INTEGER NOT NULL, spent INTEGER NOT NULL);
      DROP TABLE IF EXISTS payments;`);
    this.#balance = sql.exec<Balance & Record<string, number>>('SELECT * FROM balance').toArray()[0] ?? null;
  }

  /**
   * Remembers the limits of a tenant and of a key, and adds what new ones have reached. Their requests may
   * have ended before a restart of the object, and further ones may be refused. There are no alerts about end
   * users.
   */
  know(subjects: readonly Subject[], tenantId: string, quota: QuotaState): void {
    for (const subject of subjects) {
      if (isEndUser(subject.id)) continue;
      const last = this.#subjects.get(subject.id);
      if (last && JSON.stringify(last.limits) === JSON.stringify(subject.limits)) continue;
      this.#subjects.set(subject.id, subject);
      const credit = subject.limits.creditMicros ?? null;
      // Older releases did not report their entries.
      if (credit !== null && this.#balance === null) this.#keepBalance(0, credit, quota);
      this.#alert(subject, tenantId, quota);
    }
  }

  /**
   * Receives the sum of the entries of a prepaid balance and the time of the last one. Shares of the balance
   * count from then on. Ignores an entry that is repeated, or older than the known one.
   */
  paid(credit: number, at: number, quota: QuotaState): void {
    const last = this.#balance ?? { at: 0, credit: 0 };
    if (at > last.at || (at === last.at && credit !== last.credit)) this.#keepBalance(at, credit, quota);
  }

  #keepBalance(at: number, credit: number, quota: QuotaState): void {
    this.#setBalance({ at, credit, spent: useOf(quota, TENANT, this.#now()).spentEver });
  }

  #setBalance(balance: Balance): void {
    this.#balance = balance;
    this.#sql.exec('DELETE FROM balance');
    const { at, credit, spent } = balance;
    this.#sql.exec('INSERT INTO balance (at, credit, spent) VALUES (?, ?, ?)', at, credit, spent);
  }

  /** Forgets the limits of subjects. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#subjects.delete(id);
  }

  /** Adds the events of requests that have ended. */
  add(records: readonly UsageRecord[], quota: QuotaState): void {
    if (this.#settings.BILLING_URL !== undefined)
      this.queue.add('usage', records.map(usageEvent), this.#now());
    const tenantId = records.find(({ cost }) => cost > 0)?.tenantId;
    if (tenantId === undefined) return;
    this.#countBeforeEntry(records);
    for (const id of new Set([TENANT, ...records.map(({ keyId }) => keyId)]))
      this.#alert(this.#subjects.get(id) ?? { id, limits: UNLIMITED }, tenantId, quota);
  }

  /**
   * Isolates report an end a moment later. What had ended before the last entry is not paid by what was left
   * then.
   */
  #countBeforeEntry(records: readonly UsageRecord[]): void {
    const balance = this.#balance;
    if (balance === null) return;
    const before = records.filter(({ startedAt, latencyMs }) => startedAt + latencyMs < balance.at);
    const cost = before.reduce((sum, record) => sum + record.cost, 0);
    if (cost > 0) this.#setBalance({ ...balance, spent: balance.spent + cost });
  }

  /** Returns the alerts of the tenant and of a key, newest first. */
  alertsOf(keyId: string): SpendingAlert[] {
    return this.#sql
      .exec<{ alert: string }>('SELECT alert FROM alerts ORDER BY at DESC')
      .toArray()
      .map(({ alert }) => JSON.parse(alert) as SpendingAlert)
      .filter(({ subject }) => subject === TENANT || subject === keyId);
  }

  /** Unix milliseconds at which events must be sent; null = none waits, or they are being sent. */
  nextDue(): number | null {
    return this.#sending ? null : this.queue.nextDue();
  }

  /** Sends what is due. Never fails. */
  async send(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    await Promise.all((['alert', 'usage'] as const).map((channel) => this.#sendAll(channel)));
    this.#sending = false;
  }

  async #sendAll(channel: Channel): Promise<void> {
    for (;;) {
      const events = this.queue.due(channel, BATCH[channel], this.#now());
      if (events.length === 0) return;
      const taken = await this.#deliver(channel, events).catch(() => false);
      if (taken) this.queue.taken(events);
      else this.queue.failed(events, this.#now());
    }
  }

  async #deliver(channel: Channel, events: readonly QueuedEvent[]): Promise<boolean> {
    const delivery =
      channel === 'usage'
        ? await billingOf(events, this.#settings)
        : await alertOf(events[0]!, this.#settings, this.#env);
    return delivery === null || (await send(delivery, this.#now()));
  }

  #alert(subject: Subject, tenantId: string, quota: QuotaState): void {
    const now = this.#now();
    const use = useOf(quota, subject.id, now);
    const balance = subject.id === TENANT ? this.#balance : null;
    const shares = this.#settings.ALERT_SHARES;
    for (const alert of reachedShares(subject, use, { shares, balance, now })) {
      const sql = 'INSERT OR IGNORE INTO alerts (id, at, alert) VALUES (?, ?, ?)';
      if (this.#sql.exec(sql, alert.id, now, JSON.stringify(alert)).rowsWritten === 0) continue;
      this.#sql.exec("DELETE FROM alerts WHERE at < ? AND alert->>'limit' <> 'balance'", now - KEEP_MS);
      this.queue.add('alert', [{ id: `${tenantId}:${alert.id}`, body: alertBody(alert, tenantId) }], now);
    }
  }
}

function alertBody(
  { subject, limit, period, share, limitMicros, spentMicros, at }: SpendingAlert,
  tenant: string,
) {
  const data = { tenant, key: subject === TENANT ? null : subject, limit, period, share_percent: share };
  return JSON.stringify({
    type: 'limit.reached',
    timestamp: new Date(at).toISOString(),
    data: { ...data, limit_micros: limitMicros, spent_micros: spentMicros },
  });
}

/** Returns null if the tenant has no webhook, so that its alerts are only shown. */
async function alertOf(
  { id, body }: QueuedEvent,
  { WEBHOOK_SECRET: secret, WEBHOOK_SECRET_OLD: old, ENVIRONMENT }: Settings,
  { DB, PUBLIC_NETWORK }: Env,
): Promise<Delivery | null> {
  const { tenant } = (JSON.parse(body) as { readonly data: { readonly tenant: string } }).data;
  const url = await readWebhook(DB, tenant);
  if (url === null || secret === undefined) return null;
  const local = ENVIRONMENT === 'development';
  // An address that was set in development must not be used elsewhere.
  if (targetProblem(url, local) !== null) return null;
  const network = local ? undefined : PUBLIC_NETWORK;
  const secrets = await Promise.all(
    [secret, ...(old ? [old] : [])].map((value) => tenantSecret(value, tenant)),
  );
  return { id, url, contentType: 'application/json', body, secrets, network };
}

/** Returns null if billing is off. The id is that of these events: a repeated batch may have more. */
async function billingOf(
  events: readonly QueuedEvent[],
  { BILLING_URL: url, BILLING_SECRET: secret, BILLING_SECRET_OLD: old, BILLING_TOKEN: token }: Settings,
): Promise<Delivery | null> {
  if (url === undefined) return null;
  const id = await sha256Hex(events.map((event) => event.id).join('\n'));
  const body = `[${events.map((event) => event.body).join(',')}]`;
  const secrets = [secret, old];
  return { id, url, secrets, token, contentType: 'application/cloudevents-batch+json', body };
}
