import type { Block } from './quota/protocol.ts';

/** An answer of the limiter serves all requests of the key for this long. */
const MAX_AGE_MS = 1_000;
/** Keys without open requests are forgotten when there are more. */
const MAX_KEYS = 1_000;

interface Entry {
  readonly askedAt: number;
  block: Block | null;
}

/**
 * What limiters have said about blocked keys, so that an isolate asks about a key at most once a second,
 * however many requests of it are open. While one request asks, the others get the previous answer: they
 * cannot wait for its I/O.
 */
export class RecentBlocks {
  readonly #now: () => number;
  readonly #byKey = new Map<string, Entry>();

  /** @param now Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the block of a key or its tenant. Calls `ask` at most once a second per key. Never fails. */
  async of(keyId: string, ask: () => Promise<Block | null>): Promise<Block | null> {
    const last = this.#byKey.get(keyId);
    const askedAt = this.#now();
    // The clock may have stepped back.
    if (last && Math.abs(askedAt - last.askedAt) < MAX_AGE_MS) return last.block;
    if (this.#byKey.size >= MAX_KEYS) this.#byKey.clear();
    const entry: Entry = { askedAt, block: last?.block ?? null };
    this.#byKey.set(keyId, entry);
    // An unreachable limiter ends no request.
    entry.block = await ask().catch(() => entry.block);
    return entry.block;
  }
}
