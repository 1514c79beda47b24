import { addColumn } from '@continuo/shared/stored-format.ts';
import type { Block } from '../quota/protocol.ts';
import { Table } from '../usage/object-tables.ts';
import { DAY_MS } from '../usage/usage-sums.ts';

/** Id of the tenant among the blocked ids. Key ids are longer. */
const TENANT = 'tenant';

/**
 * A tenant's revoked keys, and whether the tenant is suspended: in memory, and in the limiter's table
 * `blocked`. A key leaves after a day or two: caches know it for half an hour, and then the database refuses
 * it.
 */
export class BlockList {
  readonly #table: Table<'blocked'>;
  #ids: Set<string>;
  #loadedAt = 0;

  /** @param now Unix milliseconds */
  constructor(sql: SqlStorage, now: number) {
    this.#table = new Table(sql, 'blocked');
    addColumn(sql, 'blocked', 'at INTEGER NOT NULL DEFAULT 0');
    // The rows of older Workers have no time.
    sql.exec('UPDATE blocked SET at = ? WHERE at = 0', now);
    this.#ids = this.#load(now);
  }

  #load(now: number): Set<string> {
    this.#loadedAt = now;
    this.#table.delete('at <= ? AND id <> ?', now - DAY_MS, TENANT);
    return new Set(this.#table.rows().map(({ id }) => id));
  }

  /** Blocks or unblocks a key, or the tenant if `keyId` is null. */
  set(keyId: string | null, blocked: boolean, now: number): void {
    const id = keyId ?? TENANT;
    if (now - this.#loadedAt >= DAY_MS) this.#ids = this.#load(now);
    if (blocked) {
      this.#ids.add(id);
      this.#table.put({ id, at: now });
    } else {
      this.#ids.delete(id);
      this.#table.delete('id = ?', id);
    }
  }

  of(keyId: string): Block | null {
    if (this.#ids.has(TENANT)) return 'suspended';
    return this.#ids.has(keyId) ? 'revoked' : null;
  }
}
