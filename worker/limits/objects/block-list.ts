import type { Block } from '../../env/limiter-protocol.ts';

/** Id of the tenant among the blocked ids. Key ids are longer. */
const TENANT = 'tenant';

/** A tenant's revoked keys, and whether the tenant is suspended: in memory, and in the limiter's table `blocked`. */
export class BlockList {
  readonly #sql: SqlStorage;
  readonly #ids: Set<string>;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS blocked (id TEXT PRIMARY KEY) WITHOUT ROWID');
    const rows = sql.exec<{ id: string }>('SELECT id FROM blocked').toArray();
    this.#ids = new Set(rows.map(({ id }) => id));
  }

  /** Blocks or unblocks a key, or the tenant if `keyId` is null. */
  set(keyId: string | null, blocked: boolean): void {
    const id = keyId ?? TENANT;
    if (blocked) {
      this.#ids.add(id);
      this.#sql.exec('INSERT OR IGNORE INTO blocked (id) VALUES (?)', id);
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
