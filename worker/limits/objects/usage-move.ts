import { hasTable } from '@continuo/shared/stored-format.ts';
import type { SumTable, TenantLedger } from '../usage/tenant-ledger.ts';
import type { UsageRecord } from '../usage/usage-record.ts';
import { ALL_SUMS } from '../usage/usage-sums.ts';
import type { LimiterStorage } from './limiter-storage.ts';

/** The tables of releases up to 0.2.0, and the columns that name a row there. */
const OLD_TABLES = {
  sums: ['usage_daily', 'day, model, key_id'],
  user_sums: ['usage_users', 'day, model, key_id, end_user'],
} as const satisfies Record<SumTable, readonly [string, string]>;

const PAGE = 2_000;
/** Key of what has been moved: the id of the last single request, or `all`. */
const MOVED = 'moved';

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
    await db?.batch(['requests', 'usage_users', 'usage_daily'].map(deletionFrom));
  }

  async #move(tenantId: string): Promise<void> {
    const { db, ledger, storage, sql, kv, now } = this.#old;
    const sums = db ? await readSums(db, tenantId) : [];
    const sent = db ? await readSent(db, tenantId) : 0;
    if (db) await this.#moveRequests(db, tenantId);
    // All of this is one commit. Older releases have stored what billing has to get of these requests.
    storage.checkpoint();
    for (const [table, rows] of sums) for (const row of rows) ledger.addRow(table, row);
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
    for (;;) {
      const moved = kv.get<number>(MOVED) ?? 0;
      const [, page] = await db.batch<{ id: number; record: string }>([
        db.prepare('DELETE FROM requests WHERE tenant_id = ? AND id <= ?').bind(tenantId, moved),
        db
          .prepare('SELECT id, record FROM requests WHERE tenant_id = ? ORDER BY id LIMIT ?')
          .bind(tenantId, PAGE),
      ]);
      const results = page?.results ?? [];
      if (results.length === 0) return;
      const records = results.map(({ record }) => JSON.parse(record) as UsageRecord);
      const ends = records.map(({ startedAt, latencyMs }) => startedAt + latencyMs);
      ledger.requests.add(records, Math.max(...ends));
      kv.put(MOVED, results.at(-1)!.id);
    }
  }
}

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

type Row = (string | number)[];

async function readSums(db: D1Database, tenantId: string): Promise<[SumTable, Row[]][]> {
  return Promise.all(
    (Object.keys(OLD_TABLES) as SumTable[]).map(async (table): Promise<[SumTable, Row[]]> => {
      const [old, names] = OLD_TABLES[table];
      const sql = `
        SELECT ${names}, ${ALL_SUMS.join(', ')} FROM ${old} WHERE tenant_id = ? ORDER BY ${names} LIMIT ? OFFSET ?`;
      const rows: Row[] = [];
      for (let from = 0; ; from += PAGE) {
        const page = await db.prepare(sql).bind(tenantId, PAGE, from).raw<Row>();
        rows.push(...page);
        if (page.length < PAGE) return [table, rows];
      }
    }),
  );
}
