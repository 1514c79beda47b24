import type { StoredKey } from './stored-key.ts';

/** How long a key is believed without asking again; the upper bound of a revocation's delay in other places. */
const KEY_TTL_MS = 60_000;
/** Unknown ids are remembered too, but shorter: a new key should work soon. */
const UNKNOWN_TTL_MS = 5_000;
const CAPACITY = 10_000;

interface Entry {
  readonly key: StoredKey | null;
  readonly until: number;
}

/** A short-lived cache in front of the key store, one per isolate. Holds hashes, never keys. */
export class KeyDirectory {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;
  /** How often something was forgotten. */
  #forgotten = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param read asks the store; called at most once, and not at all while the cache knows */
  async find(id: string, read: (id: string) => Promise<StoredKey | null>): Promise<StoredKey | null> {
    const cached = this.#entries.get(id);
    const now = this.#now();
    if (cached && cached.until > now) return cached.key;
    const forgotten = this.#forgotten;
    const key = await read(id);
    // What was forgotten meanwhile may be what was just read, as it was before.
    if (forgotten === this.#forgotten) {
      this.#remember(id, { key, until: now + (key ? KEY_TTL_MS : UNKNOWN_TTL_MS) });
    }
    return key;
  }

  /** The next look-up asks the store again. */
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
