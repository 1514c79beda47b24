import { hasTable } from '@continuo/shared/stored-format.ts';
import type { Row } from '../usage/object-tables.ts';
import type { TenantLedger } from '../usage/tenant-ledger.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import { ALL_SUMS, dayName } from '../usage/usage-sums.ts';
import type { LimiterStorage } from './limiter-storage.ts';

const PAGE = 2_000;
/** Key of what has been moved: the last single request, or `all`. */
const MOVED = 'moved';

/** The columns that name a single request of a tenant in USAGE_DB. */
interface OldName {
  readonly request_id: string;
  readonly sequence: number;
}
const FIRST: OldName = { request_id: '', sequence: 0 };

interface OldLedger {
  readonly sql: SqlStorage;
  readonly kv: SyncKvStorage;
  readonly ledger: TenantLedger;
  readonly storage: LimiterStorage;
  /** The database of these releases; absent = there was none, or it was removed. */
  readonly db: D1Database | undefined;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/**
 * Moves the ledger of a tenant from USAGE_DB, where releases up to 0.2.0 had those of all tenants, into its
 * object. Happens once, before the first question about usage or the first report.
 */
export class UsageMove {
  readonly #old: OldLedger;
  #isDone: boolean;
  #running: Promise<void> | null = null;

  constructor(old: OldLedger) {
    this.#old = old;
    // These releases kept their unsent records in the table `outbox`.
    this.#isDone = !hasTable(old.sql, 'outbox');
  }

  /**
   * Returns whether anything may have been moved.
   * @param isForced also if the object has nothing of these releases: of an erased tenant, only sums are left
   * @throws what the database throws; the next call goes on from there
   */
  async run(tenantId: string, isForced: boolean): Promise<boolean> {
    if (this.#isDone && (!isForced || this.#old.kv.get(MOVED) === 'all')) return false;
    this.#running ??= this.#move(tenantId).finally(() => {
      this.#running = null;
    });
    await this.#running;
    return true;
  }

  /** Erases what USAGE_DB still has. @throws what the database throws */
  async erase(tenantId: string): Promise<void> {
    const { db } = this.#old;
    const deletionFrom = (table: string) =>
      db!.prepare(`DELETE FROM ${table} WHERE tenant_id = ?`).bind(tenantId);
    await db?.batch(['requests', 'usage_daily'].map(deletionFrom));
  }

  async #move(tenantId: string): Promise<void> {
    const { db, ledger, storage, sql, kv, now } = this.#old;
    const sums = db ? await readSums(db, tenantId) : [];
    const sent = db ? await readSent(db, tenantId) : 0;
    if (db) await this.#moveRequests(db, tenantId);
    // All of this is one commit. Older releases have stored what billing has to get of these requests.
    storage.checkpoint();
    for (const row of sums) ledger.addSums(row);
    if (hasTable(sql, 'outbox')) {
      ledger.add(unsentIn(sql, sent), storage.number, now());
      sql.exec('DROP TABLE outbox');
    }
    ledger.announce(storage.number);
    kv.put(MOVED, 'all');
    this.#isDone = true;
  }

  /** Single requests leave USAGE_DB, where nothing deletes them any more when they are old. */
  async #moveRequests(db: D1Database, tenantId: string): Promise<void> {
    const { kv, ledger } = this.#old;
    const where = 'FROM requests WHERE tenant_id = ?';
    for (;;) {
      const { request_id, sequence } = kv.get<OldName>(MOVED) ?? FIRST;
      const [, page] = await db.batch<OldName & { record: string }>([
        db
          .prepare(`DELETE ${where} AND (request_id, sequence) <= (?, ?)`)
          .bind(tenantId, request_id, sequence),
        db
          .prepare(`SELECT request_id, sequence, record ${where} ORDER BY request_id, sequence LIMIT ?`)
          .bind(tenantId, PAGE),
      ]);
      const rows = page?.results ?? [];
      const last = rows.at(-1);
      if (last === undefined) return;
      const records = rows.map(({ record }) => JSON.parse(record) as UsageRecord);
      // Rows leave the ledger by their time, and the names of this page are random.
      for (const [, ofDay] of Map.groupBy(records, (record) => dayName(endOf(record))))
        ledger.requests.add(ofDay, Math.max(...ofDay.map(endOf)));
      kv.put(MOVED, { request_id: last.request_id, sequence: last.sequence });
    }
  }
}

const endOf = ({ startedAt, latencyMs }: UsageRecord): number => startedAt + latencyMs;

/** Returns the records that the ledger in USAGE_DB does not have. */
const unsentIn = (sql: SqlStorage, sent: number): UsageRecord[] =>
  sql
    .exec<{ record: string }>('SELECT record FROM outbox WHERE sequence > ? ORDER BY sequence', sent)
    .toArray()
    .map(({ record }) => JSON.parse(record) as UsageRecord);

/** Returns the number of the last record that the ledger in USAGE_DB has. */
async function readSent(db: D1Database, tenantId: string): Promise<number> {
  const row = db.prepare('SELECT sequence FROM usage_cursors WHERE tenant_id = ?').bind(tenantId);
  return (await row.first<number>('sequence')) ?? 0;
}

async function readSums(db: D1Database, tenantId: string): Promise<Row<'sums'>[]> {
  const names = 'day, model, key_id';
  const sql = `
    SELECT ${names}, ${ALL_SUMS.join(', ')} FROM usage_daily WHERE tenant_id = ?
    ORDER BY ${names} LIMIT ? OFFSET ?`;
  const rows: Row<'sums'>[] = [];
  for (;;) {
    const { results } = await db.prepare(sql).bind(tenantId, PAGE, rows.length).all<Row<'sums'>>();
    rows.push(...results);
    if (results.length < PAGE) return rows;
  }
}
