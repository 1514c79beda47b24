import { hasRightCheck } from '@continuo/shared/api-key.ts';
import { importSigningKey, type SigningKey } from '@continuo/shared/signing.ts';
import type { StoredKey } from './stored-key.ts';

/** Cached keys are read again after one minute. A revocation may take this long to reach other places. */
const KEY_TTL_MS = 60_000;
/** If the store fails, a key is used for this long after it was read. */
const STALE_MS = 30 * 60_000;
/** The store is asked for an outdated key at most once in this time. */
const RETRY_MS = 5_000;
/** Unknown ids are cached for a shorter time, so that new keys work soon. */
const UNKNOWN_TTL_MS = 5_000;
const CAPACITY = 10_000;

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
}

/** Refuses ids without a look-up, by their keyed check. */
interface IdPolicy {
  /** Secret of the keyed checks; null = ids are not checked. */
  readonly secret: string | null;
  /** Accepts ids without a keyed check. */
  readonly acceptUnchecked: boolean;
}

/** Accepts all ids. */
const ANY_ID: IdPolicy = { secret: null, acceptUnchecked: true };

/** A cache of the key store, one per isolate. */
export class KeyDirectory {
  /** Hashes of keys that were right when they were last used, by key. They save a hash per request. */
  readonly #hashes = new Map<string, string>();
  readonly #entries = new Map<string, Entry>();
  /** Unknown ids, and the time until which they count so. Apart, so that forged ids evict no keys. */
  readonly #unknown = new Map<string, number>();
  readonly #now: () => number;
  readonly #ids: IdPolicy;
  #idSecret: SigningKey | null = null;
  /** Number of invalidations. */
  #forgotten = 0;

  constructor(now: () => number, ids: IdPolicy = ANY_ID) {
    this.#now = now;
    this.#ids = ids;
  }

  /**
   * Returns a key from the cache, or with `read` from the store.
   * @throws what `read` throws, if the key was not read within the last 30 minutes
   */
  async find(id: string, read: (id: string) => Promise<StoredKey | null>): Promise<FoundKey> {
    const [now, forgotten] = [this.#now(), this.#forgotten];
    const entry = this.#entries.get(id);
    if (entry && entry.refreshAt > now) return { key: entry.key, stale: entry.readAt + KEY_TTL_MS <= now };
    if ((this.#unknown.get(id) ?? now) > now) return { key: null, stale: false };
    if (!entry && !(await this.#mayExist(id))) return { key: null, stale: false };
    const usable = entry && entry.readAt + STALE_MS > now;
    // Meanwhile other requests use the outdated key: a store that hangs must not delay all of them.
    if (usable) entry.refreshAt = now + RETRY_MS;
    try {
      const key = await read(id);
      // After an invalidation during the read, the result may be outdated.
      if (forgotten === this.#forgotten) this.#remember(id, key, now);
      return { key, stale: false };
    } catch (thrown) {
      if (usable && this.#entries.get(id) === entry) return { key: entry.key, stale: true };
      throw thrown;
    }
  }

  /** Returns the SHA-256 of a key that has been right before; null for all others. */
  hashOf(key: string): string | null {
    return this.#hashes.get(key) ?? null;
  }

  /** Keeps the hash of a key that has just been right. */
  keepHash(key: string, hash: string): void {
    if (!this.#hashes.has(key)) put(this.#hashes, key, hash);
  }

  /** Invalidates one key. */
  forget(id: string): void {
    this.#forgotten += 1;
    this.#entries.delete(id);
  }

  forgetTenant(tenantId: string): void {
    this.#forgotten += 1;
    for (const [id, { key }] of this.#entries) {
      if (key.principal.tenant.id === tenantId) this.#entries.delete(id);
    }
  }

  forgetAll(): void {
    this.#forgotten += 1;
    this.#entries.clear();
  }

  /** Returns false for ids that this server has not made. */
  async #mayExist(id: string): Promise<boolean> {
    const { secret, acceptUnchecked } = this.#ids;
    if (secret === null) return true;
    this.#idSecret ??= await importSigningKey(secret);
    return (await hasRightCheck(id, this.#idSecret)) ?? acceptUnchecked;
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

/** Puts an entry at the end of a cache, and removes the oldest entry of a full cache. */
function put<T>(cache: Map<string, T>, id: string, entry: T): void {
  cache.delete(id);
  const oldest = cache.keys().next();
  if (cache.size >= CAPACITY && !oldest.done) cache.delete(oldest.value);
  cache.set(id, entry);
}
