import type { Price } from '@continuo/limits/usage/price.ts';
import { ApiError } from '@continuo/shared/errors.ts';
import { OwnChanges } from '../tenants/own-changes.ts';
import type { ModelPrice } from './price-store.ts';

/** The list is read again after one minute. A new price is known everywhere by then. */
const LIST_TTL_MS = 60_000;
/** If the database fails, the list is read again after this time. */
const RETRY_MS = 5_000;

export type ServiceTier = 'default' | 'flex' | 'batch';

const factorOf = ({ flexFactor, batchFactor }: ModelPrice, tier: ServiceTier): number =>
  ({ default: 1_000, flex: flexFactor, batch: batchFactor })[tier];

type ReadPrices = (session: D1SessionConstraint) => Promise<ModelPrice[]>;

/** The prices that an isolate has read. */
export class PriceList {
  readonly #now: () => number;
  readonly #changes: OwnChanges;
  #prices: ReadonlyMap<string, readonly ModelPrice[]> | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  /** Number of changes by this isolate. */
  #forgotten = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#changes = new OwnChanges(now);
  }

  /**
   * Returns a model's price for requests that begin now; null = it costs nothing.
   * @throws ApiError 503 if they cannot be read and have never been read
   */
  async of(model: string, tier: ServiceTier, read: ReadPrices): Promise<Price | null> {
    const price = await this.current(model, read);
    if (price === null) return null;
    const factor = factorOf(price, tier);
    const { version, prompt, cachedPrompt, completion } = price;
    return {
      version,
      prompt: prompt * factor,
      cached: cachedPrompt * factor,
      completion: completion * factor,
    };
  }

  /** Returns a model's valid price as it was set. @throws ApiError 503 as `of` */
  async current(model: string, read: ReadPrices): Promise<ModelPrice | null> {
    const now = this.#now();
    if (this.#readAt + LIST_TTL_MS <= now) await this.#refresh(read, now);
    const prices = this.#prices?.get(model) ?? [];
    // The order is by time, then by version: the last valid one counts.
    return prices.findLast(({ validFrom }) => validFrom <= now) ?? null;
  }

  /** The next request reads the list again, after a change by this isolate. */
  forget(): void {
    this.#changes.note();
    this.#forgotten += 1;
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  async #refresh(read: ReadPrices, now: number): Promise<void> {
    const forgotten = this.#forgotten;
    // Meanwhile, other requests use the list that is known.
    if (this.#prices) this.#readAt = now - LIST_TTL_MS + RETRY_MS;
    try {
      const all = await read(this.#changes.session);
      const sorted = all.toSorted((a, b) => a.validFrom - b.validFrom || a.version - b.version);
      this.#prices = Map.groupBy(sorted, ({ model }) => model);
      // What was read before a change may lack it.
      if (forgotten === this.#forgotten) this.#readAt = now;
    } catch {
      if (this.#prices) return;
      throw new ApiError('server_is_overloaded', 'The prices cannot be read right now. Retry the request.');
    }
  }
}
