import { addColumn } from '@continuo/shared/stored-format.ts';
import { UNLIMITED } from '@continuo/shared/tenant.ts';
import { isEndUser } from '../end-user.ts';
import { type Counters, type Subject, useOf } from '../quota/state.ts';
import type { SpendingAlert } from '../tenant-rpc.ts';
import type { EventSource, OutgoingEvent, Positions } from '../usage/event-queue.ts';
import { Table } from '../usage/object-tables.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import { DAY_MS } from '../usage/usage-sums.ts';
import type { OldDeliveries } from './old-deliveries.ts';
import { type Balance, reachedShares } from './spending-alerts.ts';
import { TENANT } from './stored-counters.ts';

/** Alerts are forgotten after this time, except those of balances: no other limit lasts longer. */
const KEEP_MS = 40 * DAY_MS;

interface Options {
  /** In per cent. */
  readonly shares: readonly number[];
  readonly counters: Counters;
  readonly old: Pick<OldDeliveries, 'last' | 'after'>;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/**
 * A tenant's alerts about limits of money. They are stored in the commit of the records from which they come,
 * once each, and are the events of its webhook.
 */
export class LimitAlerts implements EventSource {
  readonly #table: Table<'alerts'>;
  readonly #stored: Table<'balance'>;
  readonly #options: Options;
  /** The limits of the subjects that have called since the object started. */
  readonly #subjects = new Map<string, Subject>();
  #balance: Balance | null;
  #last: number;
  /** Those that the webhook does not have. */
  undelivered: () => readonly Positions[] = () => [];

  constructor(sql: SqlStorage, options: Options) {
    this.#options = options;
    sql.exec('DROP TABLE IF EXISTS payments');
    this.#table = new Table(sql, 'alerts');
    addColumn(sql, 'alerts', 'position INTEGER');
    addColumn(sql, 'alerts', 'tenant TEXT');
    this.#stored = new Table(sql, 'balance');
    this.#balance = this.#stored.rows()[0] ?? null;
    const [last] = this.#table.rows('ORDER BY position DESC LIMIT 1');
    this.#last = Math.max(last?.position ?? 0, options.old.last);
  }

  /**
   * Remembers the limits of a tenant and of a key, and adds what new ones have reached. Their requests may
   * have ended before a restart of the object, and further ones may be refused. There are no alerts about end
   * users.
   */
  know(subjects: readonly Subject[], tenantId: string): void {
    for (const subject of subjects) {
      if (isEndUser(subject.id)) continue;
      const last = this.#subjects.get(subject.id);
      if (last && JSON.stringify(last.limits) === JSON.stringify(subject.limits)) continue;
      this.#subjects.set(subject.id, subject);
      const credit = subject.limits.creditMicros ?? null;
      // Older releases did not report their entries.
      if (credit !== null && this.#balance === null) this.#keepBalance(0, credit);
      this.#alert(subject, tenantId);
    }
  }

  /**
   * Receives the sum of the entries of a prepaid balance and the time of the last one. Shares of the balance
   * count from then on. Ignores an entry that is repeated, or older than the known one.
   */
  paid(credit: number, at: number): void {
    const last = this.#balance ?? { at: 0, credit: 0 };
    if (at > last.at || (at === last.at && credit !== last.credit)) this.#keepBalance(at, credit);
  }

  #keepBalance(at: number, credit: number): void {
    this.#setBalance({
      at,
      credit,
      spent: useOf(this.#options.counters, TENANT, this.#options.now()).spentEver,
    });
  }

  #setBalance(balance: Balance): void {
    this.#balance = balance;
    this.#stored.put({ ...balance, only: 0 });
  }

  /** Forgets the limits of subjects. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#subjects.delete(id);
  }

  /** Adds the alerts of requests that have ended. */
  add(records: readonly UsageRecord[]): void {
    const tenantId = records.find(({ cost }) => cost > 0)?.tenantId;
    if (tenantId === undefined) return;
    this.#countBeforeEntry(records);
    for (const id of new Set([TENANT, ...records.map(({ keyId }) => keyId)]))
      this.#alert(this.#subjects.get(id) ?? { id, limits: UNLIMITED }, tenantId);
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
    return this.#table
      .rows('ORDER BY at DESC')
      .map(({ alert }) => JSON.parse(alert) as SpendingAlert)
      .filter(({ subject }) => subject === TENANT || subject === keyId);
  }

  get last(): number {
    return this.#last;
  }

  after(position: number, limit: number): OutgoingEvent[] {
    const { old } = this.#options;
    const next = 'WHERE position > ? ORDER BY position LIMIT ?';
    const rows = this.#table.rows(next, Math.max(position, old.last), limit);
    return [
      ...old.after('alert', position, limit),
      ...rows.map(({ position, tenant, alert }) => ({
        position: position!,
        ...eventOf(JSON.parse(alert), tenant!),
      })),
    ].slice(0, limit);
  }

  #alert(subject: Subject, tenantId: string): void {
    const { shares, counters } = this.#options;
    const now = this.#options.now();
    const use = useOf(counters, subject.id, now);
    const balance = subject.id === TENANT ? this.#balance : null;
    for (const alert of reachedShares(subject, use, { shares, balance, now })) {
      const numbered = { position: this.#last + 1, tenant: tenantId };
      const row = { id: alert.id, at: now, alert: JSON.stringify(alert), ...numbered };
      if (!this.#table.insert(row, 'DO NOTHING')) continue;
      this.#last += 1;
      this.#forgetOld(now);
    }
  }

  #forgetOld(now: number): void {
    const old = `
      at < ? AND alert->>'limit' <> 'balance' AND NOT EXISTS
        (SELECT 1 FROM json_each(?) WHERE position > value->>0 AND position <= value->>1)`;
    this.#table.delete(old, now - KEEP_MS, JSON.stringify(this.undelivered()));
  }
}

function eventOf(alert: SpendingAlert, tenant: string): Omit<OutgoingEvent, 'position'> {
  const { id, subject, limit, period, share, limitMicros, spentMicros, at } = alert;
  const data = { tenant, key: subject === TENANT ? null : subject, limit, period, share_percent: share };
  const body = JSON.stringify({
    type: 'limit.reached',
    timestamp: new Date(at).toISOString(),
    data: { ...data, limit_micros: limitMicros, spent_micros: spentMicros },
  });
  return { id: `${tenant}:${id}`, body };
}
