import type { StoredKey } from './stored-key.ts';

/** Cached keys expire after one minute. A revocation may take this long to reach other places. */
const KEY_TTL_MS = 60_000;
/** Unknown ids are cached for a shorter time, so that new keys work soon. */
const UNKNOWN_TTL_MS = 5_000;
const CAPACITY = 10_000;

interface Entry {
  readonly key: StoredKey | null;
  readonly until: number;
}

/** A cache of the key store, one per isolate. Holds hashes, never keys. */
export class KeyDirectory {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;
  /** Number of invalidations. */
  #forgotten = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns a key from the cache, or with `read` from the store. */
  async find(id: string, read: (id: string) => Promise<StoredKey | null>): Promise<StoredKey | null> {
    const cached = this.#entries.get(id);
    const now = this.#now();
    if (cached && cached.until > now) return cached.key;
    const forgotten = this.#forgotten;
    const key = await read(id);
    // After an invalidation during the read, the result may be outdated.
    if (forgotten === this.#forgotten) {
      this.#remember(id, { key, until: now + (key ? KEY_TTL_MS : UNKNOWN_TTL_MS) });
    }
    return key;
  }

  /** Invalidates one key. */
  forget(id: string): void {
    this.#forgotten += 1;
    this.#entries.delete(id);
  }

  forgetTenant(tenantId: string): void {
    this.#forgotten += 1;
    for (const [id, { key }] of this.#entries) {
      if (key?.principal.tenant.id === tenantId) this.#entries.delete(id);
    }
  }

  forgetAll(): void {
    this.#forgotten += 1;
    this.#entries.clear();
  }

  #remember(id: string, entry: Entry): void {
    this.#entries.delete(id);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= CAPACITY && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(id, entry);
  }
}
