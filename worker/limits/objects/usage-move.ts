import type { SumTable, TenantLedger } from '../../usage/tenant-ledger.ts';
import type { UsageRecord } from '../../usage/usage-record.ts';
import { ALL_SUMS } from '../../usage/usage-sums.ts';
import type { LimiterStorage } from './limiter-storage.ts';

/** The tables of releases up to 0.2.0, and the columns that name a row there. */
const OLD_TABLES = {
  sums: ['usage_daily', 'day, model, key_id'],
  user_sums: ['usage_users', 'day, model, key_id, end_user'],
} as const satisfies Record<SumTable, readonly [string, string]>;

const PAGE = 2_000;
const KEY = 'moved';

interface OldLedger {
  readonly sql: SqlStorage;
  readonly kv: SyncKvStorage;
  readonly ledger: TenantLedger;
  readonly storage: LimiterStorage;
  /** The database of these releases; absent = there was none, or it was removed. */
  readonly db: D1Database | undefined;
  /** See `LimiterStorage.checkpoint`. */
  readonly requestsAt: () => number | null;
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
    const sql = "SELECT 1 FROM sqlite_master WHERE name = 'outbox'";
    this.#isDone = old.sql.exec(sql).toArray().length === 0;
  }

  /** @throws what the database throws; the next call goes on from there */
  async run(tenantId: string): Promise<void> {
    if (this.#isDone) return;
    this.#running ??= this.#move(tenantId).finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  async #move(tenantId: string): Promise<void> {
    const { db, ledger, storage, sql, kv, requestsAt } = this.#old;
    const sums = db ? await readSums(db, tenantId) : [];
    const sent = db ? await readCursor(db, tenantId) : 0;
    if (db) await this.#moveRequests(db, tenantId);
    // All of this is one commit.
    for (const [table, rows] of sums) for (const row of rows) ledger.addRow(table, row);
    const unsent = sql
      .exec<{ record: string }>('SELECT record FROM outbox WHERE sequence > ? ORDER BY sequence', sent)
      .toArray()
      .map(({ record }) => JSON.parse(record) as UsageRecord);
    storage.add(unsent);
    storage.checkpoint(requestsAt());
    ledger.announce(storage.number);
    sql.exec('DROP TABLE outbox');
    kv.delete(KEY);
    this.#isDone = true;
  }

  async #moveRequests(db: D1Database, tenantId: string): Promise<void> {
    const { kv, ledger } = this.#old;
    for (;;) {
      const { results } = await db
        .prepare('SELECT id, record FROM requests WHERE tenant_id = ? AND id > ? ORDER BY id LIMIT ?')
        .bind(tenantId, kv.get<number>(KEY) ?? 0, PAGE)
        .all<{ id: number; record: string }>();
      if (results.length === 0) return;
      const records = results.map(({ record }) => JSON.parse(record) as UsageRecord);
      const ends = records.map(({ startedAt, latencyMs }) => startedAt + latencyMs);
      ledger.addRequests(records, Math.max(...ends));
      kv.put(KEY, results.at(-1)!.id);
    }
  }
}

async function readCursor(db: D1Database, tenantId: string): Promise<number> {
  const cursor = db.prepare('SELECT sequence FROM usage_cursors WHERE tenant_id = ?').bind(tenantId);
  return (await cursor.first<number>('sequence')) ?? 0;
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
