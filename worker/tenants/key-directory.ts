import { hasRightCheck } from '@continuo/shared/api-key.ts';
import { LruMap } from '@continuo/shared/lru-map.ts';
import { importSigningKey, type SigningKey } from '@continuo/shared/signing.ts';
import { OwnChanges } from './own-changes.ts';
import type { KeyReading, StoredKey } from './stored-key.ts';

/** Cached keys are read again after one minute. A revocation may take this long to reach other places. */
const KEY_TTL_MS = 60_000;
/** If the store fails, a key is used for this long after it was read. */
const STALE_MS = 30 * 60_000;
/** The store is asked for an outdated key at most once in this time. */
const RETRY_MS = 5_000;
/** Unknown ids are cached for a shorter time, so that new keys work soon. */
const UNKNOWN_TTL_MS = 5_000;
const CAPACITY = 10_000;
/**
 * Ids that anyone could have made up reach the primary at most this often in this time, so that a flood of
 * them does not meet there.
 */
const PRIMARY_READS = 10;
const PRIMARY_READS_MS = 10_000;

interface Entry {
  readonly key: StoredKey;
  /** When the look-up started. */
  readonly readAt: number;
  /** The key is read again after this time. */
  refreshAt: number;
}

/** The result of a look-up. */
interface FoundKey {
  readonly key: StoredKey | null;
  /** True if the key is older than a minute. It may have been revoked: the tenant's limiter knows. */
  readonly stale: boolean;
  /** True if a copy of the database has just answered, which may not know of a revocation either. */
  readonly fromCopy: boolean;
}

/** Reads the key store. */
type ReadKey = (id: string, session: D1SessionConstraint) => Promise<KeyReading>;

/** What the id of a key shows of its origin: it was made here, it was not, or anyone may have made it. */
type Provenance = 'own' | 'foreign' | 'unknown';

/** Refuses ids without a look-up, by their keyed check. */
interface IdPolicy {
  /** Secret of the keyed checks; null = ids are not checked. */
  readonly secret: string | null;
  /** Accepts ids without a keyed check. */
  readonly acceptUnchecked: boolean;
}

const UNKNOWN: FoundKey = { key: null, stale: false, fromCopy: false };

/** Accepts all ids. */
const ANY_ID: IdPolicy = { secret: null, acceptUnchecked: true };

/** A cache of the key store, one per isolate. */
export class KeyDirectory {
  /** Hashes of keys that were right when they were last used, by key. They save a hash per request. */
  readonly #hashes = new LruMap<string, string>();
  readonly #entries = new LruMap<string, Entry>();
  /** Unknown ids, and the time until which they count so. Apart, so that forged ids evict no keys. */
  readonly #unknown = new LruMap<string, number>();
  readonly #now: () => number;
  readonly #ids: IdPolicy;
  readonly #changes: OwnChanges;
  #idSecret: SigningKey | null = null;
  /** Number of invalidations. */
  #forgotten = 0;
  /** Reads of the primary for unknown ids since a time. */
  #primaryReads = { since: 0, count: 0 };

  constructor(now: () => number, ids: IdPolicy = ANY_ID) {
    this.#now = now;
    this.#ids = ids;
    this.#changes = new OwnChanges(now);
  }

  /**
   * Returns a key from the cache, or with `read` from the store.
   * @throws what `read` throws, if the key was not read within the last 30 minutes
   * @throws Error if a copy of the store does not know the id, and too many such ids have reached the primary
   */
  async find(id: string, read: ReadKey): Promise<FoundKey> {
    const [now, forgotten] = [this.#now(), this.#forgotten];
    const entry = this.#entries.get(id);
    if (entry && entry.refreshAt > now)
      return { key: entry.key, stale: entry.readAt + KEY_TTL_MS <= now, fromCopy: false };
    if ((this.#unknown.get(id) ?? now) > now) return UNKNOWN;
    const provenance = entry ? 'own' : await this.#provenanceOf(id);
    if (provenance === 'foreign') return UNKNOWN;
    const usable = entry && entry.readAt + STALE_MS > now;
    // Meanwhile other requests use the outdated key: a store that hangs must not delay all of them.
    if (usable) entry.refreshAt = now + RETRY_MS;
    try {
      const reading = await this.#read(id, read, provenance);
      // After an invalidation during the read, the result may be outdated.
      if (forgotten === this.#forgotten) this.#remember(id, reading.key, now);
      return { ...reading, stale: false };
    } catch (thrown) {
      if (usable && this.#entries.get(id) === entry) return { key: entry.key, stale: true, fromCopy: false };
      throw thrown;
    }
  }

  /** A copy may not have a new key yet, so only the primary decides that there is none. */
  async #read(id: string, read: ReadKey, provenance: Provenance): Promise<KeyReading> {
    const near = await read(id, this.#changes.session);
    if (near.key !== null || !near.fromCopy) return near;
    if (provenance === 'unknown' && !this.#mayReadPrimary()) throw new Error('too many unknown ids');
    return read(id, 'first-primary');
  }

  #mayReadPrimary(): boolean {
    const now = this.#now();
    if (Math.abs(now - this.#primaryReads.since) >= PRIMARY_READS_MS)
      this.#primaryReads = { since: now, count: 0 };
    this.#primaryReads.count += 1;
    return this.#primaryReads.count <= PRIMARY_READS;
  }

  /** Returns the SHA-256 of a key that has been right before; null for all others. */
  hashOf(key: string): string | null {
    return this.#hashes.get(key) ?? null;
  }

  /** Keeps the hash of a key that has just been right. */
  keepHash(key: string, hash: string): void {
    put(this.#hashes, key, hash);
  }

  /** Invalidates one key. */
  forget(id: string): void {
    this.#invalidate();
    this.#entries.delete(id);
  }

  forgetTenant(tenantId: string): void {
    this.#invalidate();
    for (const [id, { key }] of this.#entries) {
      if (key.principal.tenant.id === tenantId) this.#entries.delete(id);
    }
  }

  forgetAll(): void {
    this.#invalidate();
    this.#entries.clear();
  }

  #invalidate(): void {
    this.#forgotten += 1;
    this.#changes.note();
  }

  async #provenanceOf(id: string): Promise<Provenance> {
    const { secret, acceptUnchecked } = this.#ids;
    if (secret === null) return 'unknown';
    this.#idSecret ??= await importSigningKey(secret);
    const isRight = await hasRightCheck(id, this.#idSecret);
    if (isRight === null) return acceptUnchecked ? 'unknown' : 'foreign';
    return isRight ? 'own' : 'foreign';
  }

  #remember(id: string, key: StoredKey | null, now: number): void {
    if (key === null) {
      this.#entries.delete(id);
      put(this.#unknown, id, now + UNKNOWN_TTL_MS);
    } else {
      put(this.#entries, id, { key, readAt: now, refreshAt: now + KEY_TTL_MS });
    }
  }
}

function put<T>(cache: LruMap<string, T>, id: string, entry: T): void {
  cache.set(id, entry);
  cache.trim(() => cache.size > CAPACITY);
}
