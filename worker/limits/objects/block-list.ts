import { addColumn } from '@continuo/shared/stored-format.ts';
import type { Block } from '../quota/protocol.ts';
import { DAY_MS } from '../quota/window.ts';

/** Id of the tenant among the blocked ids. Key ids are longer. */
const TENANT = 'tenant';

const SCHEMA =
  'CREATE TABLE IF NOT EXISTS blocked (id TEXT PRIMARY KEY, at INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID';

/**
 * A tenant's revoked keys, and whether the tenant is suspended: in memory, and in the limiter's table
 * `blocked`. A key leaves after a day or two: caches know it for half an hour, and then the database refuses
 * it.
 */
export class BlockList {
  readonly #sql: SqlStorage;
  #ids: Set<string>;
  #loadedAt = 0;

  /** @param now Unix milliseconds */
  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(SCHEMA);
    addColumn(sql, 'blocked', 'at INTEGER NOT NULL DEFAULT 0');
    // The rows of older Workers have no time.
    sql.exec('UPDATE blocked SET at = ? WHERE at = 0', now);
    this.#ids = this.#load(now);
  }

  #load(now: number): Set<string> {
    this.#loadedAt = now;
    this.#sql.exec('DELETE FROM blocked WHERE at <= ? AND id <> ?', now - DAY_MS, TENANT);
    const rows = this.#sql.exec<{ id: string }>('SELECT id FROM blocked').toArray();
    return new Set(rows.map(({ id }) => id));
  }

  /** Blocks or unblocks a key, or the tenant if `keyId` is null. */
  set(keyId: string | null, blocked: boolean, now: number): void {
    const id = keyId ?? TENANT;
    if (now - this.#loadedAt >= DAY_MS) this.#ids = this.#load(now);
    if (blocked) {
      this.#ids.add(id);
      this.#sql.exec('INSERT OR REPLACE INTO blocked (id, at) VALUES (?, ?)', id, now);
    } else {
      this.#ids.delete(id);
      this.#sql.exec('DELETE FROM blocked WHERE id = ?', id);
    }
  }

  /** Returns whether a key or its tenant is blocked. */
  of(keyId: string): Block | null {
    if (this.#ids.has(TENANT)) return 'suspended';
    return this.#ids.has(keyId) ? 'revoked' : null;
  }
}
